//! The header is what cbindgen makes of the interface. `WRITE_HEADER=1` writes it.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use std::path::Path;

/// The modules that C sees, in the order of the header.
const MODULES: [&str; 7] =
    ["constants", "abi/memory", "abi/mod", "abi/values", "abi/schema", "abi/session", "abi/pass"];

fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let configuration = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(configuration);
    for module in MODULES {
        builder = builder.with_src(root.join("src").join(format!("{module}.rs")));
    }
    let mut out = Vec::new();
    builder.generate().unwrap().write(&mut out);
    // Markdown's marks of code are nothing to readers of C.
    String::from_utf8(out).unwrap().replace('`', "")
}

#[test]
fn the_header_is_what_cbindgen_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/alpheus.h");
    if std::env::var_os("WRITE_HEADER").is_some() {
        std::fs::write(&path, made()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made(), "run `WRITE_HEADER=1 cargo test --package alpheus-c --test all`");
}
