//! Converts the fixed answers of a callback server. The model has checked them.

use std::time::Duration;

use callback::{Match, Noise, Rules};
use model::callback::{CallbackRules, RuleAnswer};

pub(super) fn converted(of: &CallbackRules) -> Rules {
    let mut rules = Rules::default();
    for rule in &of.rules {
        let mut matched = Match {
            name: rule.name.to_string(),
            label: rule.label.clone(),
            method: None,
            path: None,
        };
        match &rule.answer {
            RuleAnswer::Http {
                method,
                path,
                status,
                headers,
                body,
                delay_ms,
            } => {
                (matched.method, matched.path) = (method.clone(), path.clone());
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
                let delay = Duration::from_millis(*delay_ms);
                rules.add_http(matched, *status, headers, body.clone().into(), delay);
            }
            RuleAnswer::Dns {
                record,
                values,
                rotate,
            } => rules.add_dns(matched, record, values, *rotate),
        }
    }
    let ignore = &of.ignore;
    let ranges = ignore.addresses.iter();
    rules.ignore = Noise {
        addresses: ranges.filter_map(|it| it.parse().ok()).collect(),
        user_agents: ignore.user_agents.clone(),
        types: ignore.types.clone(),
    };
    rules
}
