//! Dispatches.

use std::time::Instant;

use crate::bare::Bare;
use crate::connection::Target;
use crate::stage::Stage;

const CLIENTS: usize = 64;
/// Jobs of each client in a round. A scan has at most 10,000 waiting jobs, so each round uses another scan.
const JOBS: u32 = 140;
const ROUNDS: usize = 3;

pub(crate) fn run() {
    let stage = Stage::new();
    stage.block_on(async {
        println!("dispatches: {CLIENTS} clients, {ROUNDS} rounds of {JOBS} jobs each");
        let body = stage.world.path("body");
        std::fs::write(&body, vec![b'x'; 1_000]).unwrap();
        let bare = Bare::start(&body);
        let plain = Target {
            address: bare.address.clone(),
            ..stage.target.clone()
        };
        for round in 0..ROUNDS {
            let scan = format!("own_{round}");
            let floor = rate(&plain, &scan, 200).await;
            let ours = rate(&stage.target, &scan, 202).await;
            println!(
                "  {ours:>7.0}/s, bare {floor:>7.0}/s, ratio {:.2}",
                ours / floor
            );
        }
    });
}

async fn rate(target: &Target, scan: &str, status: u16) -> f64 {
    let begun = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let target = target.clone();
        let request = Stage::dispatch_request(&target, scan);
        tokio::spawn(async move {
            let mut connection = target.connect().await;
            for _ in 0..JOBS {
                let answer = connection.ask(&request).await;
                assert_eq!(answer.status, status, "{:?}", answer.body);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        client.await.unwrap();
    }
    f64::from(JOBS) * CLIENTS as f64 / begun.elapsed().as_secs_f64()
}
