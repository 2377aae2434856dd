//! Access tokens and the audit log.

use super::headers::IDEMPOTENCY_KEY;
use super::operation::{does, lists, takes};
use crate::limits::SMALL_BODY;

routes! {
    User ListTokens GET "/v0/tokens", TokenWrite; [USER, LIMIT, CURSOR], 0,
        lists::<wire::Token>("List the access tokens, without secrets");
    User CreateToken POST "/v0/tokens", TokenWrite; [], SMALL_BODY,
        takes::<wire::CreateToken, wire::CreatedToken>("Make an access token")
            .statuses(&[201])
            .reads(&[IDEMPOTENCY_KEY]);
    User RegenerateToken POST "/v0/tokens/{token}/regenerate", TokenWrite; [], SMALL_BODY,
        takes::<wire::RegenerateToken, wire::CreatedToken>("Give an access token a new secret")
            .reads(&[IDEMPOTENCY_KEY]);
    User RevokeToken DELETE "/v0/tokens/{token}", TokenWrite; [], 0,
        does("Revoke an access token");
    User MoveToken POST "/v0/tokens/{token}/move", Admin; [], SMALL_BODY,
        takes::<wire::MoveToken, wire::Token>("Give an access token to another user");
    User ListAudit GET "/v0/audit", Admin; [ACTOR, KIND, SINCE, UNTIL, LIMIT, CURSOR], 0,
        lists::<wire::AuditRecord>("List the audit log");

    Page Tokens GET "/tokens", TokenWrite; [USER, CURSOR], 0;
    Page Audit GET "/audit", Admin; [ACTOR, KIND, CURSOR], 0;

    Action CreateToken POST "/tokens", TokenWrite; [], SMALL_BODY;
    Action RegenerateToken POST "/tokens/{token}/regenerate", TokenWrite; [], SMALL_BODY;
    Action MoveToken POST "/tokens/{token}/move", Admin; [], SMALL_BODY;
    Action RevokeToken POST "/tokens/{token}/revoke", TokenWrite; [], SMALL_BODY;
}
