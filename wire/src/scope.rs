//! The scopes of access tokens.

names! {
    /// What a token may do. Pages hide actions whose scope the viewer lacks.
    pub enum Scope {
        ProjectRead = "project:read",
        ProjectWrite = "project:write",
        WorkflowRead = "workflow:read",
        WorkflowWrite = "workflow:write",
        WorkflowSuspend = "workflow:suspend",
        ConditionWrite = "condition:write",
        JobRead = "job:read",
        JobWrite = "job:write",
        JobCancel = "job:cancel",
        Dispatch = "dispatch",
        BlobRead = "blob:read",
        BlobWrite = "blob:write",
        SecretWrite = "secret:write",
        NotifyRead = "notify:read",
        NotifyWrite = "notify:write",
        CallbackRead = "callback:read",
        CallbackWrite = "callback:write",
        PayloadRead = "payload:read",
        PayloadWrite = "payload:write",
        RunnerRead = "runner:read",
        RunnerWrite = "runner:write",
        MemberWrite = "member:write",
        TokenWrite = "token:write",
        Metrics = "metrics",
        /// Includes all others.
        Admin = "admin",
        /// Only of tokens of jobs.
        CallbackOwn = "callback:own",
    }
}
