//! The vertical place of each node and bend, near its neighbours.

use super::shape::Layers;

/// Between two nodes of a column. Beside a bend it is half.
const ROW_GAP: i64 = 24;

/// More sweeps move nothing by more than two pixels.
const SWEEPS: usize = 12;

/// The weight of an edge by the number of its ends that are bends: long edges should be straight. The current place
/// of an item weighs 1.
const PULL: [i64; 3] = [16, 32, 128];

/// Items that touch and move together. Their place is `sum / weight`.
struct Block {
    sum: i64,
    weight: i64,
    count: usize,
}

impl Block {
    fn is_below(&self, other: &Self) -> bool {
        i128::from(self.sum) * i128::from(other.weight)
            > i128::from(other.sum) * i128::from(self.weight)
    }
}

/// The middle of each item. Items of a column keep their order and never overlap.
pub(super) fn place(layers: &Layers) -> Vec<i64> {
    let mut middles = vec![0; layers.heights.len()];
    for column in &layers.columns {
        let mut at = 0;
        let mut above = None;
        for &item in column {
            at += above.map_or(0, |above| distance(layers, above, item));
            middles[item] = at;
            above = Some(item);
        }
    }
    let count = layers.columns.len();
    for sweep in 0..SWEEPS {
        for step in 0..count {
            let column = if sweep % 2 == 0 {
                step
            } else {
                count - 1 - step
            };
            settle(layers, &layers.columns[column], &mut middles);
        }
    }
    for column in &layers.columns {
        straighten(layers, column, &mut middles);
    }
    middles
}

/// The distance between the middles of two adjacent items of a column.
fn distance(layers: &Layers, above: usize, below: usize) -> i64 {
    let gap = if above < layers.nodes && below < layers.nodes {
        ROW_GAP
    } else {
        ROW_GAP / 2
    };
    (layers.heights[above] + layers.heights[below]) / 2 + gap
}

/// Moves a column as near to its neighbours as order and gaps allow (isotonic regression).
fn settle(layers: &Layers, column: &[usize], middles: &mut [i64]) {
    let mut offsets = Vec::with_capacity(column.len());
    let mut blocks: Vec<Block> = Vec::with_capacity(column.len());
    let mut offset = 0;
    let mut above = None;
    for &item in column {
        offset += above.map_or(0, |above| distance(layers, above, item));
        offsets.push(offset);
        above = Some(item);
        let (mut sum, mut weight) = (middles[item], 1);
        for &other in layers.before[item].iter().chain(&layers.after[item]) {
            let bends = usize::from(item >= layers.nodes) + usize::from(other >= layers.nodes);
            sum += PULL[bends] * middles[other];
            weight += PULL[bends];
        }
        let mut block = Block {
            sum: sum - offset * weight,
            weight,
            count: 1,
        };
        while let Some(previous) = blocks.pop_if(|previous| previous.is_below(&block)) {
            block.sum += previous.sum;
            block.weight += previous.weight;
            block.count += previous.count;
        }
        blocks.push(block);
    }
    let mut placed = column.iter().zip(offsets);
    for block in blocks {
        let at = block.sum.div_euclid(block.weight);
        for (&item, offset) in placed.by_ref().take(block.count) {
            middles[item] = at + offset;
        }
    }
}

/// Moves each bend to the height of the previous bend, as far as the gaps allow. Otherwise long edges look like
/// stairs.
fn straighten(layers: &Layers, column: &[usize], middles: &mut [i64]) {
    let mut free_from = i64::MIN;
    for (place, &item) in column.iter().enumerate() {
        let below = column.get(place + 1);
        if let [before] = layers.before[item][..]
            && item >= layers.nodes
            && before >= layers.nodes
        {
            let free_to = below.map(|&below| middles[below] - distance(layers, item, below));
            middles[item] = middles[before]
                .min(free_to.unwrap_or(i64::MAX))
                .max(free_from);
        }
        free_from = below.map_or(free_from, |&below| {
            middles[item] + distance(layers, item, below)
        });
    }
}
