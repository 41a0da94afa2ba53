//! Text from outside in a line of a log.

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

#[cfg(test)]
mod tests {
    use super::OneLine;

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
