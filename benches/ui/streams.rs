//! Memory of open streams.

use crate::budgets::Budgets;
use crate::connection::Connection;
use crate::figures::memory;
use crate::readers::Reader;
use crate::stage::Stage;

const STREAMS: usize = 200;

/// kB of 1,024 bytes, as the kernel counts.
const EACH: f64 = 24.0;

pub(crate) fn run(budgets: &mut Budgets) {
    let mut stage = Stage::new();
    let reader = stage.block_on(Reader::sign_in(&stage.target));
    // Memory left over from the start of the world would hide the memory of the streams.
    stage.restart();
    let pid = stage.world.daemon_pid();
    let idle = memory(pid, "VmRSS:");
    println!("  idle daemon: {idle:.0} kB");
    stage.block_on(async {
        // The first stream loads code and tables into memory.
        let mut streams = vec![reader.stream().await];
        hear(&stage, &mut streams).await;
        let before = memory(pid, "VmRSS:");
        for _ in 0..STREAMS {
            streams.push(reader.stream().await);
        }
        hear(&stage, &mut streams).await;
        let each = (memory(pid, "VmRSS:") - before) / STREAMS as f64;
        budgets.print(&format!("each of {STREAMS} streams"), each, EACH, " kB");
    });
}

/// Makes a change, and waits until every stream has sent it.
async fn hear(stage: &Stage, streams: &mut [Connection]) {
    stage.dispatch("idle").await;
    for stream in streams {
        stream.event().await;
    }
}
