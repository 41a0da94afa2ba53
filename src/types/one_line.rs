//! Text from outside in a line of a log, and in a sentence.

use std::fmt::{self, Write as _};

/// Shows a text on one line: what would end the line, steer a terminal or turn the direction of
/// writing is escaped (`\n`, `\u{1b}`), so that no name can look like another event. Everything
/// else stands as it is.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_escaped) {
            let (plain, behind) = rest.split_at(at);
            f.write_str(plain)?;
            let mut letters = behind.chars();
            for letter in letters.next().into_iter().flat_map(char::escape_default) {
                f.write_char(letter)?;
            }
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

fn is_escaped(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            // Separators of lines and paragraphs; marks, embeddings and isolates of direction.
            '\u{2028}' | '\u{2029}'
                | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The most characters of a [`quote`], without its dots: whole keys and short lists.
const QUOTED_CHARS_MAX: usize = 100;

/// A text from outside for a sentence, bare: on one line as [`OneLine`] has it, and no more of it
/// than tells what it is. After 100 characters, escapes included, dots stand for the rest.
#[must_use]
pub fn quote(text: &str) -> String {
    let beginning = text.char_indices().nth(QUOTED_CHARS_MAX + 1);
    let mut shown = OneLine(&text[..beginning.map_or(text.len(), |(at, _)| at)]).to_string();
    if let Some((at, _)) = shown.char_indices().nth(QUOTED_CHARS_MAX) {
        shown.truncate(at);
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{OneLine, quote};

    #[test]
    fn a_quote_is_on_one_line_and_ends_after_100_characters() {
        let line = |text: &str, count: usize| text.repeat(count);
        assert_eq!(quote("a\nb"), "a\\nb");
        assert_eq!(quote(&line("日", 100)), line("日", 100));
        assert_eq!(quote(&line("日", 101)), line("日", 100) + "...");
        assert_eq!(quote(&line("\0", 1 << 20)), line("\\u{0}", 20) + "...");
    }

    #[test]
    fn what_would_end_or_forge_a_line_is_escaped_and_all_else_stands() {
        let shown = |text: &str| OneLine(text).to_string();
        assert_eq!(shown("a\r\n[2026] WARN b\t"), "a\\r\\n[2026] WARN b\\t");
        assert_eq!(
            shown("\u{1b}[2K\u{85}\u{7f}\0"),
            "\\u{1b}[2K\\u{85}\\u{7f}\\u{0}"
        );
        assert_eq!(
            shown("\u{2028}\u{202e}x\u{2069}"),
            "\\u{2028}\\u{202e}x\\u{2069}"
        );
        for plain in ["", "User:CN=Zoë \"x\" C:\\n", "日本", "🦀 a'b"] {
            assert_eq!(shown(plain), plain);
        }
    }
}
