//! Values that can be written in several ways with the same meaning.

use crate::cron::Cron;
use crate::expression::Expression;
use crate::template::Template;

/// A value that is shown as written and compared by meaning.
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

/// A script; equal to all scripts with the same meaning.
pub(super) struct Script<'s>(pub(super) &'s Template);

impl PartialEq for Script<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.means_the_same(other.0)
    }
}
