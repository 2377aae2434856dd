//! Reads the expectations of a scan.

use chrono::TimeDelta;

use super::Reader;
use super::object::{Object, keys};
use crate::definition::Expect;
use crate::diagnostic::Code;
use crate::limits::JOB_TIMEOUT;
use crate::yaml::Entry;

const FORM: &str = "{ success_every: 26h }";

impl Reader<'_> {
    pub(super) fn expect(&mut self, entry: &Entry, timeout: Option<TimeDelta>) -> Option<Expect> {
        let object = Object::of(&entry.value, "`expect`", FORM, &mut self.report)?;
        object.check_keys(&keys::EXPECT, &mut self.report);
        let mut time = |key, max| {
            let entry = object.get(key)?;
            self.duration(entry, &format!("`{key}`"), max)
        };
        let expect = Expect {
            success_every: time("success_every", None),
            starts_within: time("starts_within", None),
            at_least: time("at_least", Some(JOB_TIMEOUT)),
            at_most: time("at_most", Some(JOB_TIMEOUT)),
        };
        if object.entries().is_empty() {
            let message = "`expect` says nothing";
            self.report
                .warning(object.head(), Code::NoEffect, message)
                .hint(format!("write it like `{FORM}`, or remove it"));
        }
        if let (Some(least), Some(most)) = (expect.at_least, expect.at_most)
            && least > most
        {
            let message = "`at_least` is longer than `at_most`: no job can meet both";
            self.report
                .error(object.head(), Code::InvalidValue, message)
                .hint("swap the two durations");
        }
        if let (Some(most), Some(timeout), Some(entry)) =
            (expect.at_most, timeout, object.get("at_most"))
            && most >= timeout
        {
            let message =
                "`at_most` is never reached: the `timeout` of the scan ends its jobs before";
            self.report
                .warning(entry.value.span, Code::NoEffect, message)
                .hint("make `at_most` shorter than `timeout`");
        }
        Some(expect)
    }
}
