//! Converts the fixed answers of callback servers.

use model::callback::{CallbackRule, CallbackRules, Ignored, RuleAnswer};
use wire::CallbackIgnored;
use workflow::notify::NotifyName;

use crate::failure::Failure;

pub(crate) fn shown(rules: &CallbackRules) -> wire::CallbackRules {
    let Ignored {
        addresses,
        user_agents,
        types,
    } = rules.ignore.clone();
    wire::CallbackRules {
        rules: rules.rules.iter().cloned().map(rule).collect(),
        ignore: CallbackIgnored {
            addresses,
            user_agents,
            types,
        },
    }
}

fn rule(of: CallbackRule) -> wire::CallbackRule {
    let (name, label) = (of.name.to_string(), of.label);
    match of.answer {
        RuleAnswer::Http {
            method,
            path,
            status,
            headers,
            body,
            delay_ms,
        } => wire::CallbackRule::Http {
            name,
            label,
            method,
            path,
            status,
            headers,
            body,
            delay_ms,
        },
        RuleAnswer::Dns {
            record,
            values,
            rotate,
        } => wire::CallbackRule::Dns {
            name,
            label,
            record,
            values,
            rotate,
        },
    }
}

/// The rules that somebody asks for. The decision checks them.
pub(crate) fn asked(of: wire::CallbackRules) -> Result<CallbackRules, Failure> {
    let CallbackIgnored {
        addresses,
        user_agents,
        types,
    } = of.ignore;
    let rules: Result<Vec<_>, _> = of.rules.into_iter().map(asked_rule).collect();
    Ok(CallbackRules {
        rules: rules?,
        ignore: Ignored {
            addresses,
            user_agents,
            types,
        },
    })
}

fn asked_rule(of: wire::CallbackRule) -> Result<CallbackRule, Failure> {
    let (name, label, answer) = match of {
        wire::CallbackRule::Http {
            name,
            label,
            method,
            path,
            status,
            headers,
            body,
            delay_ms,
        } => {
            let answer = RuleAnswer::Http {
                method,
                path,
                status,
                headers,
                body,
                delay_ms,
            };
            (name, label, answer)
        }
        wire::CallbackRule::Dns {
            name,
            label,
            record,
            values,
            rotate,
        } => {
            let answer = RuleAnswer::Dns {
                record,
                values,
                rotate,
            };
            (name, label, answer)
        }
    };
    let name = NotifyName::new(name);
    let name = name.map_err(|error| Failure::invalid("rules", format!("name: {error}")))?;
    Ok(CallbackRule {
        name,
        label,
        answer,
    })
}
