//! What can be written in several ways that mean the same.

use crate::cron::Cron;
use crate::expression::Expression;
use crate::template::Template;

/// A value that is told as it is written and compared by what it means.
pub(super) trait Written {
    fn source(&self) -> &str;
    fn means_the_same(&self, other: &Self) -> bool;
}

macro_rules! written {
    ($($kind:ty),*) => {
        $(impl Written for $kind {
            fn source(&self) -> &str {
                self.source()
            }

            fn means_the_same(&self, other: &Self) -> bool {
                self.means_the_same(other)
            }
        })*
    };
}

written!(Cron, Expression, Template);

/// A script, equal to all that mean the same.
pub(super) struct Script<'s>(pub(super) &'s Template);

impl PartialEq for Script<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.means_the_same(other.0)
    }
}
