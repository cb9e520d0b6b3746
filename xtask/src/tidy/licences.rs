//! Every dependency may be used by anybody who may use us.

use super::Finding;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Licences that we take code under.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Asks cargo for every package that this platform builds.
pub(super) fn allowed_only(root: &Path) -> Result<Vec<Finding>, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let listed = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|e| format!("tidy: cannot run cargo: {e}"))?;
    if !listed.status.success() {
        return Err(format!("tidy: cargo: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let metadata: Value =
        serde_json::from_slice(&listed.stdout).map_err(|e| format!("tidy: cargo metadata: {e}"))?;
    Ok(refused(&metadata))
}

fn refused(metadata: &Value) -> Vec<Finding> {
    let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let text =
        |package: &Value, key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    packages
        .filter_map(|package| {
            let name = text(package, "name").unwrap_or_default();
            match text(package, "license") {
                Some(licence) if allows(&licence) => None,
                Some(licence) => Some((name, licence)),
                None => Some((name, "none that it names".to_owned())),
            }
        })
        .map(|(name, licence)| {
            Finding::new("Cargo.lock", 1, format!("`{name}` is under {licence}"))
        })
        .collect()
}

/// Whether one of the alternatives consists of allowed licences alone.
fn allows(licence: &str) -> bool {
    let plain = licence.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" OR ").any(|one| one.split(" AND ").all(|part| ALLOWED.contains(&part.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refuses_what_is_not_listed_and_what_names_nothing() {
        let metadata = json!({"packages": [
            {"name": "a", "license": "MIT OR Apache-2.0"},
            {"name": "b", "license": concat!("AG", "PL-3.0")},
            {"name": "c", "license": "BSD-3-Clause-Clear"},
            {"name": "d", "license": null},
            {"name": "e", "license": "(MIT OR Apache-2.0) AND Unicode-3.0"},
        ]});
        let named: Vec<_> = refused(&metadata).into_iter().map(|f| f.what).collect();
        assert_eq!(named.len(), 3);
        assert!(named[0].contains("`b`") && named[1].contains("`c`") && named[2].contains("`d`"));
    }
}
