//! Fixed answers of a callback server, and what it does not record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fixed answers of a callback server, in their order: the first that fits is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallbackRules {
    #[serde(default)]
    pub rules: Vec<CallbackRule>,
    #[serde(default)]
    pub ignore: CallbackIgnored,
}

/// A fixed answer. Nothing of a request comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum CallbackRule {
    Http {
        /// Each interaction has the name of the rule that answered.
        name: String,
        /// Only names with this label in front of the server's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<String>,
        /// Without the query. At the end, `*` stands for anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// 200 to 599; absent for 200.
        #[serde(default = "ok")]
        status: u16,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        body: String,
        /// Milliseconds before the answer, at most 30,000.
        #[serde(default, skip_serializing_if = "crate::is_zero")]
        delay_ms: u64,
    },
    Dns {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// `A`, `AAAA`, `TXT`, `MX` or `CAA`.
        record: String,
        /// As in a zone file: `127.0.0.1`, `10 mail.example.com`.
        values: Vec<String>,
        /// True if each answer has one value, the next one each time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rotate: bool,
    },
}

const fn ok() -> u16 {
    200
}

/// What is answered and not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallbackIgnored {
    /// Addresses and ranges of senders, such as `192.0.2.0/24`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Texts in the header `User-Agent`, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_agents: Vec<String>,
    /// `dns`, `http`, or a type of DNS such as `AAAA`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}
