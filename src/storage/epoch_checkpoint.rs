//! The `leader-epoch-checkpoint` file: each epoch with its first offset.
//!
//! Java answers divergence from it; kraftd takes its epochs from the batches themselves at start
//! and writes the file for Java. It is only read as evidence: see `recovery`.

use std::fmt::Write as _;
use std::path::Path;

use super::atomic;
use super::fault::Result;
use crate::types::{Epoch, Offset};

/// Its name in the partition's directory.
pub(crate) const EPOCH_CHECKPOINT_FILE: &str = "leader-epoch-checkpoint";

/// What the file says, or `None` when it is absent or not readable as such a file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<(Epoch, Offset)>>> {
    let Some(bytes) = atomic::read_small(path, 64 << 20)? else {
        return Ok(None);
    };
    Ok(std::str::from_utf8(&bytes).ok().and_then(parse))
}

fn parse(text: &str) -> Option<Vec<(Epoch, Offset)>> {
    let mut lines = text.lines();
    if lines.next()?.trim() != "0" {
        return None;
    }
    let count: usize = lines.next()?.trim().parse().ok()?;
    let mut epochs = Vec::new();
    for line in lines {
        let (epoch, start) = line.trim().split_once(' ')?;
        epochs.push((Epoch(epoch.parse().ok()?), Offset(start.parse().ok()?)));
    }
    (epochs.len() == count).then_some(epochs)
}

/// Replaces the file.
pub(crate) fn write(path: &Path, epochs: &[(Epoch, Offset)]) -> Result<()> {
    let mut text = format!("0\n{}\n", epochs.len());
    for (epoch, start) in epochs {
        writeln!(text, "{epoch} {start}").expect("writing to a string cannot fail");
    }
    atomic::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_written_as_java_writes_them_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(EPOCH_CHECKPOINT_FILE);
        let epochs = vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(29))];
        write(&path, &epochs).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0\n2\n1 0\n3 29\n");
        assert_eq!(read(&path).unwrap(), Some(epochs));
    }

    #[test]
    fn rubbish_is_no_evidence() {
        for text in [
            "",
            "0",
            "1\n0\n",
            "0\nx\n",
            "0\n2\n1 0\n",
            "0\n1\n1\n",
            "0\n1\n1 x\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("0\n0\n"), Some(Vec::new()));
    }
}
