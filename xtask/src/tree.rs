//! The repository's text files, in memory, so that rules can be tried on broken ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Path from the root, with `/`, to content.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

impl Tree {
    /// What git tracks, and what it would track if it were added.
    pub(crate) fn load(root: &Path) -> Result<Self, String> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|e| format!("tidy: cannot run git: {e}"))?;
        if !listed.status.success() {
            return Err(format!("tidy: git: {}", String::from_utf8_lossy(&listed.stderr).trim()));
        }
        let mut files = BTreeMap::new();
        for name in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            // Listed but gone, or not text: nothing for rules about text.
            // A picture is there too, without text.
            if let Ok(bytes) = std::fs::read(root.join(name)) {
                let content = String::from_utf8(bytes).unwrap_or_default();
                files.insert(name.to_owned(), content);
            }
        }
        Ok(Self { files })
    }

    /// The files whose names end so.
    pub(crate) fn ending<'a>(
        &'a self,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(p, _)| p.ends_with(suffix))
            .map(|(p, c)| (p.as_str(), c.as_str()))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The directories that hold a `Cargo.toml` with a package, and that file.
    pub(crate) fn packages(&self) -> impl Iterator<Item = (&str, toml::Table)> {
        self.ending("/Cargo.toml").filter_map(|(path, content)| {
            let table: toml::Table = content.parse().ok()?;
            table.contains_key("package").then(|| (path.trim_end_matches("/Cargo.toml"), table))
        })
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        let own = |(path, content): (&str, &str)| (path.to_owned(), content.to_owned());
        Self { files: files.into_iter().map(own).collect() }
    }
}
