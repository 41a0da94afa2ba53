//! The tree as one JSON document, written as it is walked.

use std::io::{self, Write};

use super::tree::{Node, View};

/// Writes a node with everything below it: a directory is an object of its nodes by name, a leaf
/// its value.
///
/// # Errors
/// Those of writing to `out`.
pub fn write(view: View<'_>, node: Node<'_>, out: &mut dyn Write) -> io::Result<()> {
    match node {
        Node::Leaf(leaf) => {
            serde_json::to_writer(out, &leaf.json(view.show_secrets)).map_err(io::Error::from)
        }
        Node::Directory(directory) => {
            out.write_all(b"{")?;
            for (at, (name, child)) in view.children(directory).enumerate() {
                if at > 0 {
                    out.write_all(b",")?;
                }
                serde_json::to_writer(&mut *out, &*name).map_err(io::Error::from)?;
                out.write_all(b":")?;
                write(view, child, out)?;
            }
            out.write_all(b"}")
        }
    }
}
