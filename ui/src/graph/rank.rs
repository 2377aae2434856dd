//! Finds the edges that close cycles, and the column of each node.

use super::shape::Link;

/// Marks edges to reverse, so that the graph has no cycle. Edges of a node to itself are not marked.
pub(super) fn back_edges(nodes: usize, links: &[Link]) -> Vec<bool> {
    let mut leaving = vec![Vec::new(); nodes];
    let mut is_entered = vec![false; nodes];
    for (index, link) in links.iter().enumerate() {
        if link.from != link.to {
            leaving[link.from].push((index, link.to));
            is_entered[link.to] = true;
        }
    }
    // Start at nodes without incoming edges, so that edges lead away from them.
    let mut starts: Vec<usize> = (0..nodes).collect();
    starts.sort_by_key(|&node| is_entered[node]);
    let mut visits = vec![Visit::None; nodes];
    let mut back = vec![false; links.len()];
    // Depth first, with an explicit stack, because the depth depends on the input.
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for start in starts {
        if visits[start] == Visit::None {
            visits[start] = Visit::Open;
            stack.push((start, 0));
        }
        while let Some((node, next)) = stack.pop() {
            let Some(&(index, to)) = leaving[node].get(next) else {
                visits[node] = Visit::Closed;
                continue;
            };
            stack.push((node, next + 1));
            match visits[to] {
                Visit::None => {
                    visits[to] = Visit::Open;
                    stack.push((to, 0));
                }
                Visit::Open => back[index] = true,
                Visit::Closed => {}
            }
        }
    }
    back
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    None,
    /// On the path from the start to the current node.
    Open,
    Closed,
}

/// The column of each node. `links` has no cycles except edges of a node to itself.
pub(super) fn ranks(nodes: usize, links: &[Link]) -> Vec<usize> {
    let mut leaving = vec![Vec::new(); nodes];
    let mut entering = vec![0_usize; nodes];
    for link in links.iter().filter(|link| link.from != link.to) {
        leaving[link.from].push(link.to);
        entering[link.to] += 1;
    }
    let mut unseen = entering.clone();
    let mut order: Vec<usize> = (0..nodes).filter(|&node| unseen[node] == 0).collect();
    let mut rank = vec![0; nodes];
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        for &to in &leaving[node] {
            rank[to] = rank[to].max(rank[node] + 1);
            unseen[to] -= 1;
            if unseen[to] == 0 {
                order.push(to);
            }
        }
    }
    // Move a node towards its targets if that shortens more edges than it lengthens.
    for &node in order.iter().rev() {
        let nearest = leaving[node].iter().map(|&to| rank[to]).min();
        if let Some(nearest) = nearest
            && nearest > rank[node] + 1
            && leaving[node].len() > entering[node]
        {
            rank[node] = nearest - 1;
        }
    }
    rank
}
