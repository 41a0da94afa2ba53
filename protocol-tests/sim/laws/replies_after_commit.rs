//! A client is told "done" for a record at `offset` only when `offset < commit` at the leader that
//! tells it; a proposal of a leader that lost its leadership is never told.

use kraftd::types::{Epoch, Offset};

use crate::law;

/// No memory: the law is about one moment.
#[derive(Debug, Default)]
pub(crate) struct Law;

impl Law {
    pub(crate) fn told(&self, offset: Offset, commit: Option<Offset>) {
        law!(
            commit.is_some_and(|commit| offset < commit),
            "{offset} is told, commit is {commit:?}"
        );
    }

    pub(crate) fn proposed(&self, epoch: Epoch, leading: Option<Epoch>) {
        law!(
            leading == Some(epoch),
            "told in {epoch} while leading {leading:?}"
        );
    }
}
