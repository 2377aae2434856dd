//! `everscan scan dispatch`: makes a job, and follows it to its end on request.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use uuid::Uuid;
use wire::DispatchRequest;

use super::target::{Names, Target};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_text;
use crate::session::Session;
use crate::stay::Stay;

#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    #[command(flatten)]
    target: Target,
    /// Value of an input; may be repeated, but the environment has room for one
    #[arg(long, short, env = "SERVICE_INPUT", value_name = "KEY=VALUE", value_parser = pair)]
    input: Vec<(String, String)>,
    /// Value of an input of type string; may be repeated, as --input
    #[arg(long, env = "SERVICE_INPUT_STRING", value_name = "KEY=VALUE", value_parser = pair)]
    input_string: Vec<(String, String)>,
    /// Value of an input of type bool, true or false; may be repeated, as --input
    #[arg(long, env = "SERVICE_INPUT_BOOL", value_name = "KEY=BOOL", value_parser = switch)]
    input_bool: Vec<(String, bool)>,
    /// File that holds the value of an input; may be repeated, as --input
    #[arg(long, env = "SERVICE_INPUT_FILE", value_name = "KEY=PATH", value_parser = pair)]
    input_file: Vec<(String, String)>,
    #[command(flatten)]
    stay: Stay,
}

impl Dispatch {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let names = self.target.names(step_variable)?;
        let values = [self.input, self.input_string].concat();
        let request = DispatchRequest {
            inputs: inputs(values, self.input_bool, self.input_file)?,
        };
        let client = session.client()?;
        names.verify(&client).await?;
        let Names { workflow, scan, .. } = names;
        let key = Uuid::new_v4().to_string();
        let job = client.dispatch(&workflow, &scan, &request, &key).await?;
        self.stay.after(job, &client, session).await
    }
}

fn step_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn inputs(
    values: Vec<(String, String)>,
    switches: Vec<(String, bool)>,
    files: Vec<(String, String)>,
) -> Result<BTreeMap<String, Value>, Error> {
    let mut inputs = BTreeMap::new();
    let values = values
        .into_iter()
        .map(|(key, text)| (key, Value::String(text)));
    let switches = switches.into_iter().map(|(key, on)| (key, Value::Bool(on)));
    let read = files.into_iter().map(|(key, path)| {
        let text = read_text(&PathBuf::from(path), limits::INPUT_FILE)?;
        Ok::<_, Error>((key, Value::String(text)))
    });
    for pair in values.chain(switches).map(Ok).chain(read) {
        let (key, value) = pair?;
        if inputs.contains_key(&key) {
            return Err(Error::Usage {
                what: format!("input {key} is given twice"),
                hint: "give each input once, with one of --input, --input-string, --input-bool and --input-file",
            });
        }
        inputs.insert(key, value);
    }
    Ok(inputs)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as KEY=VALUE".to_owned()),
    }
}

fn switch(text: &str) -> Result<(String, bool), String> {
    match pair(text).map(|(key, value)| (key, value.parse())) {
        Ok((key, Ok(on))) => Ok((key, on)),
        Ok((_, Err(_))) | Err(_) => Err("write it as KEY=true or KEY=false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_hold_anything() {
        for (text, key, value) in [
            ("a=b", "a", "b"),
            ("a=", "a", ""),
            ("a=b=c\n", "a", "b=c\n"),
        ] {
            assert_eq!(pair(text), Ok((key.to_owned(), value.to_owned())));
        }
        assert!(pair("a").is_err());
        assert!(pair("=a").is_err());
    }

    #[test]
    fn an_input_given_twice_is_refused() {
        let twice = vec![
            ("a".to_owned(), "1".to_owned()),
            ("a".to_owned(), "2".to_owned()),
        ];
        assert!(matches!(
            inputs(twice, Vec::new(), Vec::new()),
            Err(Error::Usage { .. })
        ));
    }
}
