//! The walks of ARCHITECTURE.md lead to functions that exist.

use super::Finding;
use crate::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";
const DECLARATIONS: [&str; 7] = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "mod "];

/// Each step of a walk names a crate, and functions in files of it (or `of` another one).
pub(super) fn steps_lead_to_code(tree: &Tree) -> Vec<Finding> {
    let lines = tree.files.get(MAP).map_or("", String::as_str).lines();
    let rows = lines.enumerate().filter_map(|(at, line)| Some((at + 1, step(line)?)));
    let mut findings = Vec::new();
    for (number, (home, places)) in rows {
        for Reference { file, of, names } in places {
            let package = of.unwrap_or(home);
            let Some(content) = source(tree, package, file) else {
                let what = format!("`{package}` has no file `{file}`");
                findings.push(Finding::new(MAP, number, what));
                continue;
            };
            let gone = names.into_iter().filter(|name| !declares(content, name));
            findings.extend(gone.map(|name| {
                let what = format!("`{file}` of `{package}` does not declare `{name}`");
                Finding::new(MAP, number, what)
            }));
        }
    }
    findings
}

/// Functions in one file.
struct Reference<'a> {
    file: &'a str,
    of: Option<&'a str>,
    names: Vec<&'a str>,
}

/// The crate of a row `| step | crate | function and file |`, and what its last column names.
fn step(line: &str) -> Option<(&str, Vec<Reference<'_>>)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let (_, home, code) = (cells.next()?, quoted(cells.next()?)?, cells.next()?);
    let (mut names, mut places) = (Vec::new(), Vec::<Reference<'_>>::new());
    // What stands between backquotes is at the odd places.
    let parts: Vec<&str> = code.split('`').collect();
    for pair in parts.chunks_exact(2) {
        let [before, code] = pair else { continue };
        match *code {
            file if before.ends_with(" in ") && file.ends_with(".rs") => {
                places.push(Reference { file, of: None, names: std::mem::take(&mut names) });
            }
            package if *before == " of " => {
                places.last_mut().into_iter().for_each(|place| place.of = Some(package));
            }
            name if is_name(name) => names.push(name),
            _ => {}
        }
    }
    (!places.is_empty()).then_some((home, places))
}

fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|name| !name.contains('`'))
}

fn is_name(code: &str) -> bool {
    code.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':')
}

fn source<'a>(tree: &'a Tree, package: &str, file: &str) -> Option<&'a str> {
    let prefix = format!("crates/{package}/");
    let suffix = format!("/{file}");
    let is_there = |path: &str| path.starts_with(&prefix) && path.ends_with(&suffix);
    tree.ending(".rs").find(|(path, _)| is_there(path)).map(|(_, content)| content)
}

/// Whether a file declares the last part of `Type::function`.
fn declares(content: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    DECLARATIONS.iter().any(|word| {
        content.match_indices(&format!("{word}{name}")).any(|(at, found)| {
            let next = content.get(at + found.len()..).and_then(|rest| rest.chars().next());
            next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const PAGE: &str = "\
| step | crate | function and file |
| --- | --- | --- |
| One. | `board` | `Server::write` and `read` in `server/mod.rs`, called by `send` in `main.rs` of `alpheus` (`POST /v1/x`) |
| Two. | `board` | `gone` in `server/mod.rs`, `send` in `nowhere.rs` |
";

    #[test]
    fn refuses_a_step_to_what_is_not_there() {
        let tree = Tree::from([
            (MAP, PAGE),
            ("crates/board/src/server/mod.rs", "pub fn write(\nstruct reader;\nfn read<T>(\n"),
            ("crates/alpheus/src/main.rs", "fn send("),
        ]);
        let expected = [
            "ARCHITECTURE.md:4: `server/mod.rs` of `board` does not declare `gone`",
            "ARCHITECTURE.md:4: `board` has no file `nowhere.rs`",
        ];
        assert_eq!(messages(&steps_lead_to_code(&tree)), expected);
        let without = Tree::from([(MAP, PAGE), ("crates/alpheus/src/main.rs", "fn sends(")]);
        assert_eq!(messages(&steps_lead_to_code(&without)).len(), 4);
    }
}
