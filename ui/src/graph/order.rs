//! Orders the nodes and bends within their columns so that few edges cross.

use super::shape::Layers;

/// More sweeps rarely remove a crossing.
const SWEEPS: usize = 16;

/// Stop after this many sweeps without improvement.
const PATIENCE: usize = 6;

/// Barycentres are integers with this many parts per place.
const PARTS: usize = 1 << 10;

pub(super) fn order(layers: &mut Layers) {
    let mut places = vec![0; layers.heights.len()];
    for column in &layers.columns {
        number(column, &mut places);
    }
    let mut least = crossings(layers, &places);
    let mut best = layers.columns.clone();
    let mut unimproved = 0;
    for sweep in 0..SWEEPS {
        if least == 0 || unimproved == PATIENCE {
            break;
        }
        let count = layers.columns.len();
        for step in 0..count {
            let to_the_right = sweep % 2 == 0;
            let column = if to_the_right { step } else { count - 1 - step };
            sort_by_barycentre(layers, column, to_the_right, &mut places);
        }
        for column in 0..count {
            swap_neighbours(layers, column, &mut places);
        }
        let now = crossings(layers, &places);
        if now < least {
            least = now;
            unimproved = 0;
            best.clone_from(&layers.columns);
        } else {
            unimproved += 1;
        }
    }
    layers.columns = best;
}

fn number(column: &[usize], places: &mut [usize]) {
    for (place, &item) in column.iter().enumerate() {
        places[item] = place;
    }
}

fn sort_by_barycentre(
    layers: &mut Layers,
    column: usize,
    to_the_right: bool,
    places: &mut [usize],
) {
    let near = if to_the_right {
        &layers.before
    } else {
        &layers.after
    };
    // The sort is stable, so the result depends only on the input.
    layers.columns[column].sort_by_cached_key(|&item| match near[item].len() {
        0 => places[item] * PARTS,
        count => near[item].iter().map(|&other| places[other]).sum::<usize>() * PARTS / count,
    });
    number(&layers.columns[column], places);
}

/// Swaps neighbours where that removes crossings.
fn swap_neighbours(layers: &mut Layers, column: usize, places: &mut [usize]) {
    let items = &mut layers.columns[column];
    for &item in items.iter() {
        layers.before[item].sort_unstable_by_key(|&other| places[other]);
        layers.after[item].sort_unstable_by_key(|&other| places[other]);
    }
    for lower in 1..items.len() {
        let (above, below) = (items[lower - 1], items[lower]);
        let mut now = 0;
        let mut swapped = 0;
        for near in [&layers.before, &layers.after] {
            now += pairs_crossed(&near[above], &near[below], places);
            swapped += pairs_crossed(&near[below], &near[above], places);
        }
        if swapped < now {
            items.swap(lower - 1, lower);
        }
    }
    number(items, places);
}

/// The number of crossings between the edges of two items, if `above` is above `below`. Both lists are sorted by
/// place.
fn pairs_crossed(above: &[usize], below: &[usize], places: &[usize]) -> usize {
    let mut passed = 0;
    above
        .iter()
        .map(|&upper| {
            while passed < below.len() && places[below[passed]] < places[upper] {
                passed += 1;
            }
            passed
        })
        .sum()
}

/// The number of crossings between all columns. A Fenwick tree makes it n log n instead of n².
fn crossings(layers: &Layers, places: &[usize]) -> usize {
    let longest = layers.columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut tree = vec![0_usize; longest + 1];
    let mut ends = Vec::new();
    let mut total = 0;
    for column in &layers.columns {
        tree.fill(0);
        for (earlier, &item) in column.iter().enumerate() {
            ends.clear();
            ends.extend(layers.after[item].iter().map(|&other| places[other]));
            if earlier > 0 {
                total += ends
                    .iter()
                    .map(|&end| after_place(&tree, end))
                    .sum::<usize>();
            }
            for &end in &ends {
                add(&mut tree, end);
            }
        }
    }
    total
}

fn add(tree: &mut [usize], place: usize) {
    // Slot 0 has the total, and the other slots are a Fenwick tree.
    tree[0] += 1;
    let mut slot = place + 1;
    while slot < tree.len() {
        tree[slot] += 1;
        slot += slot & slot.wrapping_neg();
    }
}

/// The number of counted ends below the place.
fn after_place(tree: &[usize], place: usize) -> usize {
    let mut slot = place + 1;
    let mut up_to = 0;
    while slot > 0 {
        up_to += tree[slot];
        slot &= slot - 1;
    }
    tree[0] - up_to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(columns: Vec<Vec<usize>>, links: &[(usize, usize)]) -> Layers {
        let count = columns.iter().map(Vec::len).sum();
        let mut layers = Layers {
            columns,
            before: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            heights: vec![10; count],
            nodes: count,
        };
        for &(from, to) in links {
            layers.after[from].push(to);
            layers.before[to].push(from);
        }
        layers
    }

    fn count(layers: &Layers) -> usize {
        let mut places = vec![0; layers.heights.len()];
        for column in &layers.columns {
            number(column, &mut places);
        }
        crossings(layers, &places)
    }

    #[test]
    fn crossings_are_counted() {
        let columns = vec![vec![0, 1, 2], vec![3, 4, 5]];
        assert_eq!(count(&layers(columns.clone(), &[(0, 3), (1, 4)])), 0);
        assert_eq!(count(&layers(columns.clone(), &[(0, 4), (1, 3)])), 1);
        assert_eq!(count(&layers(columns.clone(), &[(0, 4), (1, 4)])), 0);
        let all_crossed = [(0, 5), (1, 4), (2, 3)];
        assert_eq!(count(&layers(columns, &all_crossed)), 3);
    }

    #[test]
    fn an_order_without_crossings_is_found() {
        let columns = vec![vec![0, 1, 2], vec![3, 4, 5]];
        let mut layers = layers(columns, &[(0, 5), (1, 4), (2, 3)]);
        order(&mut layers);
        assert_eq!(count(&layers), 0);
    }
}
