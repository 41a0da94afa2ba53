//! A Rust file split into what the rules look at: the text, the text without comments and
//! strings, and which lines belong to tests. No parser: enough for formatted code.

/// One Rust file.
pub(crate) struct Source {
    /// Path below the root.
    pub(crate) path: String,
    /// The text as it is.
    pub(crate) text: String,
    /// The same lines with comments, strings and character literals blanked out.
    pub(crate) bare: String,
    /// For each line, whether it is compiled for tests only.
    pub(crate) test_lines: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let bare = blank(text);
        let test_lines = test_lines(path, &bare);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            bare,
            test_lines,
        }
    }

    /// The room of a file below `src`, if it is in one: `src/raft/vote.rs` is in `raft`.
    pub(crate) fn room(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        let room = below.split('/').next()?.trim_end_matches(".rs");
        (room != "lib" && room != "main").then_some(room)
    }

    /// The bare lines with their numbers, tests left out.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.numbered()
            .filter(|(number, _)| !self.test_lines[number - 1])
    }

    /// The bare lines with their numbers, from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.bare.lines())
    }
}

/// Whether the whole file is for tests, told by its name: its parent declares it under
/// `cfg(test)`.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !path.starts_with("src/")
        || path.contains("/tests/")
        || name == "tests.rs"
        || name == "testing.rs"
        || name.ends_with("_tests.rs")
}

fn test_lines(path: &str, bare: &str) -> Vec<bool> {
    let count = bare.lines().count();
    if is_test_file(path) {
        return vec![true; count];
    }
    let mut lines = vec![false; count];
    let mut from = 0;
    while let Some(found) = bare[from..].find("#[cfg(test)]") {
        let start = from + found;
        let end = item_end(bare, start).unwrap_or(bare.len());
        let first = bare[..start].matches('\n').count();
        let last = bare[..end]
            .matches('\n')
            .count()
            .min(count.saturating_sub(1));
        lines[first..=last].fill(true);
        from = end.max(start + 1);
    }
    lines
}

/// The end of the item that starts at `start`: its `;`, or the `}` of its first block.
pub(crate) fn item_end(bare: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in bare[start..].char_indices() {
        match c {
            ';' if depth == 0 => return Some(start + at),
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(start + at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Replaces comments, strings and character literals by blanks of the same length.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that starts here, or `at` where none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = |n: usize| chars.get(at + n).copied().unwrap_or('\0');
    match (chars[at], next(1)) {
        ('/', '/') => find(chars, at, |rest| rest[0] == '\n').unwrap_or(chars.len()),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => quoted_end(chars, at + 1, '"'),
        ('r', '"' | '#') if !follows_word(chars, at) => raw_end(chars, at),
        ('\'', '\\') => quoted_end(chars, at + 1, '\''),
        ('\'', _) if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() && chars[at - 1] != 'b' || chars[at - 1] == '_')
}

fn find(chars: &[char], from: usize, hit: impl Fn(&[char]) -> bool) -> Option<usize> {
    (from..chars.len()).find(|&at| hit(&chars[at..]))
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let close: Vec<char> = std::iter::once('"')
        .chain((0..hashes).map(|_| '#'))
        .collect();
    find(chars, at + 2 + hashes, |rest| rest.starts_with(&close))
        .map_or(chars.len(), |end| end + close.len())
}
