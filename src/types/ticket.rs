//! Names for what is under way between the core and the shell.

/// A request that waits for its reply. Given by the shell, never reused in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A storage command that waits for its completion. Given by the core, never reused in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A question of this node to another one that waits for its answer. Given by the core, never
/// reused in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);
