//! Reads YAML text as a tree.

use super::{ContentError, DocumentError, MAX_DEPTH, Node, Position, Value};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use std::collections::HashSet;

/// A list or map that is still open.
enum Open {
    List { at: Position, items: Vec<Node> },
    Map { at: Position, entries: Vec<(String, Node)>, seen: HashSet<String>, key: Option<String> },
}

/// Reads one document.
pub(super) fn read(text: &str) -> Result<Node, DocumentError> {
    let (mut tree, mut documents) = (Tree::default(), 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        let at = position(&span.start);
        match event {
            Event::DocumentStart(..) if documents > 0 => {
                return Err(fail(at, ContentError::SecondDocument));
            }
            Event::DocumentStart(..) => documents += 1,
            event => tree.take(event, at)?,
        }
    }
    tree.root.ok_or_else(|| fail(Position::default(), ContentError::Empty))
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    root: Option<Node>,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), DocumentError> {
        match event {
            Event::Alias(_) | Event::Anchor(..) | Event::UnresolvedAlias(_) => {
                Err(fail(at, ContentError::Alias))
            }
            Event::Scalar(_, _, anchor, tag) if anchor != 0 || tag.is_some() => {
                Err(fail(at, ContentError::Alias))
            }
            Event::SequenceStart(_, anchor, tag) | Event::MappingStart(_, anchor, tag)
                if anchor != 0 || tag.is_some() =>
            {
                Err(fail(at, ContentError::Alias))
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, at),
            Event::SequenceStart(..) => self.begin(at, |at| Open::List { at, items: Vec::new() }),
            Event::MappingStart(..) => self.begin(at, |at| Open::Map {
                at,
                entries: Vec::new(),
                seen: HashSet::new(),
                key: None,
            }),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    /// Opens a list or map where a value is expected.
    fn begin(&mut self, at: Position, open: fn(Position) -> Open) -> Result<(), DocumentError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(fail(at, ContentError::TooDeep));
        }
        if self.key_is_expected() {
            return Err(fail(at, ContentError::BadKey));
        }
        self.open.push(open(self.position_of_value(at)));
        Ok(())
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        let node = match self.open.pop() {
            Some(Open::List { at, items }) => Node { at, value: Value::List(items) },
            Some(Open::Map { at, entries, .. }) => Node { at, value: Value::Map(entries) },
            None => return Ok(()),
        };
        self.put(node);
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        at: Position,
    ) -> Result<(), DocumentError> {
        if let Some(Open::Map { seen, key: key @ None, .. }) = self.open.last_mut() {
            if text.is_empty() || text == "<<" {
                return Err(fail(at, ContentError::BadKey));
            }
            if !seen.insert(text.to_owned()) {
                return Err(fail(at, ContentError::DuplicateKey { key: text.to_owned() }));
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let plain = style == ScalarStyle::Plain;
        let value = match text {
            "" | "~" | "null" if plain => Value::Null,
            _ => Value::Scalar { text: text.to_owned(), plain },
        };
        self.put(Node { at: self.position_of_value(at), value });
        Ok(())
    }

    fn key_is_expected(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    /// The path of the expected value, with the line of the value itself.
    fn position_of_value(&self, at: Position) -> Position {
        let outer = match self.open.last() {
            Some(Open::List { at, items }) => at.item(items.len()),
            Some(Open::Map { at, key: Some(key), .. }) => at.key(key),
            _ => Position::default(),
        };
        Position { line: at.line, path: outer.path }
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                if let Some(key) = key.take() {
                    entries.push((key, node));
                }
            }
            None => self.root = Some(node),
        }
    }
}

fn position(mark: &Marker) -> Position {
    Position { line: Some((mark.line(), mark.col() + 1)), path: String::new() }
}

/// What the parser says, and what to do about `a: b: c`.
fn syntax(error: &ScanError) -> DocumentError {
    const SECOND: &str = "mapping values are not allowed in this context";
    const REMEDY: &str = "`key: value` cannot stand here: write it in braces, or on a line of its own that is indented like its neighbours, or in quotes if it is a text";
    let words = error.kind().to_string().replace(SECOND, REMEDY);
    fail(position(error.marker()), ContentError::Syntax(words))
}

fn fail(at: Position, problem: ContentError) -> DocumentError {
    DocumentError { at, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (Option<(usize, usize)>, ContentError) {
        let error = read(text).unwrap_err();
        (error.at.line, error.problem)
    }

    #[test]
    fn a_tree_keeps_texts_and_positions() {
        let root = read("a:\n  - 0.10\n  - {b: 'x y', c: }\n").unwrap();
        let Value::Map(entries) = &root.value else { panic!("a map") };
        let Value::List(items) = &entries[0].1.value else { panic!("a list") };
        assert_eq!(items[0].value, Value::Scalar { text: "0.10".into(), plain: true });
        assert_eq!(items[0].at.to_string(), "line 2, column 5 (a[0])");
        let Value::Map(inner) = &items[1].value else { panic!("a map") };
        assert_eq!(inner[0].1.value, Value::Scalar { text: "x y".into(), plain: false });
        assert_eq!(inner[0].1.at.to_string(), "line 3, column 9 (a[1].b)");
        assert_eq!(inner[1].1.value, Value::Null);
    }

    #[test]
    fn yaml_that_is_not_plain_is_rejected_with_its_position() {
        assert_eq!(problem(""), (None, ContentError::Empty));
        assert_eq!(problem("a: 1\n---\nb: 2"), (Some((2, 1)), ContentError::SecondDocument));
        assert_eq!(problem("a: &x 1"), (Some((1, 7)), ContentError::Alias));
        assert_eq!(problem("a: !t 1"), (Some((1, 7)), ContentError::Alias));
        assert_eq!(
            problem("a: 1\na: 2"),
            (Some((2, 1)), ContentError::DuplicateKey { key: "a".into() })
        );
        assert_eq!(problem("[1]: 2").1, ContentError::BadKey);
        assert_eq!(
            problem(&format!("{}{}", "[".repeat(100), "]".repeat(100))).1,
            ContentError::TooDeep
        );
        let (line, ContentError::Syntax(_)) = problem("a: 1\n b: 2\n") else { panic!("syntax") };
        assert_eq!(line.map(|(line, _)| line), Some(2));
        let error = read("name: S\nmetadata: area: string\n").unwrap_err().to_string();
        assert!(error.contains("`key: value` cannot stand here: write it in braces"), "{error}");
        assert!(error.starts_with("line 2, column 15"), "{error}");
    }
}
