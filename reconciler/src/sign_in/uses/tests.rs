use tempfile::TempDir;
use tokio::time::advance;

use super::*;
use crate::testing::{TestDaemon, freeze, in_time};

#[tokio::test(start_paused = true)]
async fn many_requests_with_a_token_start_one_task_that_records_its_use() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let token = daemon.handle.state().read(|world| {
        let mut tokens = world.tokens();
        tokens.next().unwrap().clone()
    });
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    for _ in 0..100 {
        daemon.handle.sign_ins().note_use(&token);
    }
    assert_eq!(tasks(), before + 1);
    let noted = async {
        let state = daemon.handle.state();
        let is_noted = |world: &model::World| world.token(token.id).unwrap().last_used.is_some();
        while !state.read(is_noted) {
            tokio::task::yield_now().await;
        }
    };
    in_time("the recorded use", noted).await;

    // A failed recording is not retried at once.
    let gone = Token {
        id: TokenId::from_uuid(uuid::Uuid::nil()),
        ..Token::clone(&token)
    };
    for tasks_more in [1, 0] {
        let before = tasks();
        daemon.handle.sign_ins().note_use(&gone);
        assert_eq!(tasks(), before + tasks_more);
    }
    advance(NOTE_REST).await;
    let before = tasks();
    daemon.handle.sign_ins().note_use(&gone);
    assert_eq!(tasks(), before + 1);
    daemon.close().await;
}
