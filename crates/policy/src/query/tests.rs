//! Valid and invalid queries, and where the invalid ones are wrong.

use super::*;
use crate::fraction::Fraction;
use alpheus_time::Span;
use proptest::prelude::*;

const HOUR: Span = Span::seconds(3600);

fn create(text: &str) -> Create {
    match parse(text) {
        Ok(Statement::Create(create)) => create,
        other => panic!("{text}: {other:?}"),
    }
}

/// A query of these items.
fn select(items: &str) -> String {
    format!("CREATE STREAM s AS SELECT {items} WINDOW TUMBLING (SIZE 1 HOUR) FROM X")
}

#[test]
fn the_query_of_the_papers_figure_4_is_read() {
    let query = create(
        "CREATE STREAM HearthRateCalifornia (heartrate) AS SELECT AVG(heartrate)
         WINDOW TUMBLING (SIZE 1 HOUR) FROM MedicalSensor BETWEEN 1 AND 1000
         WHERE region = California AND age >= 60",
    );
    assert_eq!(query.items[0].alias, "heartrate");
    assert_eq!((query.window, query.grace, query.population), (HOUR, None, Some((1, 1000))));
    assert_eq!(query.filter.unwrap().to_string(), "region = 'California' AND age >= '60'");
}

#[test]
fn every_clause_is_read_and_written_back() {
    let query = create(
        "create stream \"my stream\" as -- a comment
         select avg(heart-rate), HISTOGRAM(\"altitude m\", -0.5, 5, 800) AS heights, Var(x), count(*)
         FROM MedicalSensor BETWEEN 100 AND 1000
         WHERE region IN ('California', 'Texas') AND NOT (ageGroup <> 'senior' OR floor < -2)
         WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 500 MILLISECONDS)
         GROUP BY region, ageGroup
         WITH (epsilon = 0.5, delta = 1e-9, alpha = '1/3', dropout = 0.2, masks = 'epoch', mask_delta = 1e-12)
         RELEASE TO hospital;",
    );
    let aliases: Vec<_> = query.items.iter().map(|item| item.alias.as_str()).collect();
    assert_eq!(aliases, ["avg_heart_rate", "heights", "var_x", "count"]);
    assert_eq!((query.window, query.grace), (Span::seconds(10), Some(Span(500_000))));
    assert_eq!(query.settings.alpha, Some(Fraction::THIRD));
    assert_eq!(query.settings.dropout, Some(Fraction::FIFTH));
    assert_eq!(query.settings.masks, Some(MaskChoice::Epoch));
    assert_eq!(query.settings.mask_delta_exponent, Some(12));
    assert_eq!(query.release_to, Some(Word::new("hospital")));
    assert_eq!(
        query.filter.as_ref().unwrap().to_string(),
        "region IN ('California', 'Texas') AND NOT (ageGroup <> 'senior' OR floor < '-2')"
    );
    assert_eq!(create(&query.to_string()), query);
}

#[test]
fn a_name_in_quotes_is_a_name_whatever_it_is() {
    for name in [
        "heart rate",
        "größe",
        "Ж",
        "SELECT",
        "FROM",
        "AS",
        "WINDOW",
        "case",
        "not",
        "null",
        "true",
        "cast",
        "interval",
        "exists",
        "array",
        "EDGES",
        "a\"b",
        "it's",
        "--",
        "a--b",
        "/*",
        "1st",
        "x;y",
        "a, b",
    ] {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let query = create(&format!(
            "CREATE STREAM {quoted} AS SELECT SUM({quoted}) AS \"of {}\", MAX({quoted})
             WINDOW TUMBLING (SIZE 1 HOUR) FROM {quoted} WHERE {quoted} = 'x' OR NOT ({quoted} IN ('y'))
             GROUP BY {quoted} RELEASE TO {quoted}",
            name.replace('"', "\"\"")
        ));
        assert_eq!((query.name.text.as_str(), query.group_by[0].text.as_str()), (name, name));
        assert_eq!(query.items[0].alias, format!("of {name}"));
        assert_eq!(create(&query.to_string()), query, "{query}");
    }
}

/// A name that every row has cannot be a column or a group as well.
#[test]
fn columns_that_every_row_has_are_no_aliases_and_no_groups() {
    for word in ["status", "integrity", "plan", "sealed", "members_refused", "noise"] {
        let error = parse(&select(&format!("SUM(x) AS {word}"))).unwrap_err();
        assert!(matches!(error.problem, SyntaxError::ReservedAlias { .. }), "{word}");
        let error = parse(&format!("{} GROUP BY {word}", select("SUM(x)"))).unwrap_err();
        assert!(matches!(error.problem, SyntaxError::ReservedGroup { .. }), "{word}");
    }
}

#[test]
fn every_function_is_read_and_written_back() {
    let items = "SUM(x), COUNT(x), AVG(x), MEAN(x), VAR(x), VARIANCE(x), VAR_POP(x), STDDEV(x), \
        STDDEV_POP(x), HISTOGRAM(x), HISTOGRAM(x, 0, 0.5, 10) AS h, HISTOGRAM(x, EDGES(0, 1, 100)) AS e, \
        MEDIAN(x), PERCENTILE(x, 0.95), MIN(x), MAX(x), MODE(x), RANGE(x), TOPK(x, 3), REGR_SLOPE(y, x), \
        REGR_INTERCEPT(y, x), REGR_R2(y, x), COVAR_POP(y, x), SUM_BY(x, z, 5), COUNT_BY(x, z), AVG_BY(x, z), \
        VAR_BY(x, z), SUM_ABOVE(x), SUM_BELOW(x), COUNT_ABOVE(x), COUNT_BELOW(x), ANY(x), ALL(x), \
        APPROX_DISTINCT(x), FREQUENCY(x, 'it''s'), COUNT(*)";
    let query = create(&select(items));
    assert_eq!(query.items.len(), 36);
    assert_eq!(create(&query.to_string()), query);
    let names: Vec<_> = query.items.iter().map(|item| item.name).collect();
    assert!(Function::names().all(|name| names.contains(&name)), "a function lacks a test");
}

#[test]
fn other_statements_are_read_and_written_back() {
    for (text, printed) in [
        ("show streams;", "SHOW STREAMS"),
        ("SHOW SCHEMAS", "SHOW SCHEMAS"),
        ("SHOW queries", "SHOW QUERIES"),
        ("DESCRIBE MedicalSensor", "DESCRIBE MedicalSensor"),
        ("DROP STREAM \"a b\"", "DROP STREAM \"a b\""),
    ] {
        assert_eq!(parse(text).unwrap().to_string(), printed);
    }
    let explain = format!("EXPLAIN PRIVACY {}", select("SUM(x)"));
    assert!(matches!(parse(&explain), Ok(Statement::Explain { privacy: true, .. })));
}

/// A query, the line, column and length of the wrong word, and a part of the message.
const BAD: &[(&str, (u32, u32, u32), &str)] = &[
    ("", (1, 1, 1), "expected CREATE STREAM"),
    ("UPDATE x", (1, 1, 6), "expected CREATE STREAM, SELECT"),
    ("SELECT 1", (1, 8, 1), "expected a function such as AVG(x)"),
    ("SHOW TABLES", (1, 6, 6), "STREAMS, SCHEMAS or QUERIES"),
    ("SHOW STREAMS SHOW QUERIES", (1, 14, 4), "one statement"),
    ("CREATE STREAM s AS SELECT x", (1, 27, 1), "on its own"),
    ("CREATE STREAM s AS SELECT *", (1, 27, 1), "SELECT * is not supported"),
    ("CREATE STREAM s AS SELECT AVERAGE(x)", (1, 27, 7), "no function `AVERAGE`"),
    ("CREATE STREAM s AS\nSELECT SUM(x),\n  HISTOGRM(y)", (3, 3, 8), "did you mean `HISTOGRAM`?"),
    ("CREATE STREAM s AS SELECT SUM(x, y)", (1, 27, 3), "SUM is written SUM(attribute)"),
    ("CREATE STREAM s AS SELECT MAX(*)", (1, 27, 3), "MAX is written MAX(attribute)"),
    ("CREATE STREAM s AS SELECT COUNT(DISTINCT x)", (1, 33, 8), "APPROX_DISTINCT"),
    ("CREATE STREAM s AS SELECT PERCENTILE(x, 95)", (1, 27, 10), "between 0 and 1"),
    ("CREATE STREAM s AS SELECT HISTOGRAM(x, 0, 0, 5)", (1, 27, 9), "above 0"),
    ("CREATE STREAM s AS SELECT HISTOGRAM(x, 0, 1, 0.5)", (1, 27, 9), "from 1 to 65535"),
    ("CREATE STREAM s AS SELECT HISTOGRAM(x, EDGES(1, 1))", (1, 27, 9), "strictly ascending"),
    ("CREATE STREAM s AS SELECT SUM(x)", (1, 33, 1), "no WINDOW"),
    ("CREATE STREAM s AS SELECT SUM(x) WINDOW TUMBLING (SIZE 1 HOUR)", (1, 63, 1), "no FROM"),
    ("CREATE STREAM s AS SELECT SUM(x) WINDOW HOPPING (SIZE 1 HOUR)", (1, 41, 7), "overlapping"),
    ("CREATE STREAM s AS SELECT SUM(x) WINDOW TUMBLING (SIZE 1 EON)", (1, 58, 3), "unit of time"),
    (
        "CREATE STREAM s AS SELECT SUM(x) WINDOW TUMBLING (SIZE 1 YEAR)",
        (1, 58, 4),
        "write `364 DAYS`",
    ),
    ("CREATE STREAM s AS SELECT SUM(x) WINDOW TUMBLING (SIZE 0 HOURS)", (1, 56, 1), "above 0"),
    ("CREATE STREAM s AS SELECT SUM('x')", (1, 27, 3), "SUM is written"),
    (
        "CREATE STREAM s (a, b) AS SELECT SUM(x) WINDOW TUMBLING (SIZE 1 HOUR) FROM X",
        (1, 18, 1),
        "2 columns",
    ),
    ("CREATE STREAM s AS SELECT SUM(x) AS 'y", (1, 37, 1), "quotes"),
    (
        "CREATE STREAM \u{455} AS SELECT SUM(x) WINDOW TUMBLING (SIZE 1 HOUR) FROM X WITH (integrity = 'verified')",
        (1, 15, 1),
        "no two names may look the same",
    ),
];

/// Text after a valid query. Columns count from there.
const BAD_CLAUSES: &[(&str, u32, u32, &str)] = &[
    ("BETWEEN 5 AND 2", 8, 1, "the first at least 1"),
    ("BETWEEN 0 AND 2", 8, 1, "the first at least 1"),
    ("BETWEEN 1 TO 2", 10, 2, "expected AND"),
    ("WHERE", 5, 1, "a condition such as"),
    ("WHERE a", 6, 1, "a condition such as"),
    ("WHERE a = 1 AND b LIKE 'x'", 16, 10, "a condition such as"),
    ("WHERE a = 1 WHERE b = 2", 12, 5, "a second WHERE"),
    ("GROUP BY a, a", 12, 1, "a second column"),
    ("GROUP a", 6, 1, "expected BY"),
    ("HAVING a > 1", 0, 6, "filter the result stream"),
    ("JOIN Y", 0, 4, "REGR_SLOPE"),
    ("WITH (alfa = 1)", 6, 4, "did you mean `alpha`?"),
    ("WITH (alpha = 1)", 14, 1, "from 0 to below 1"),
    ("WITH (alpha = '3/2')", 14, 5, "from 0 to below 1"),
    ("WITH (epsilon = -1)", 16, 1, "above 0"),
    ("WITH (masks = 'none')", 14, 6, "'clique', 'dream', 'epoch' or 'neighbours'"),
    ("WITH (mask_delta = 0.02)", 19, 4, "a power of ten"),
    ("WITH (dropout = 0.1, dropout = 0.2)", 21, 7, "a second setting"),
    ("banana", 0, 6, "the end of the query or one of"),
];

#[test]
fn errors_point_at_the_word() {
    for (text, place, message) in BAD {
        check(text, *place, message);
    }
    check(&select("SUM(x), SUM(x)"), (1, 35, 3), "a second column is named `sum_x`");
    check(&select("SUM(x) AS population"), (1, 37, 10), "every result already has");
    for (text, column, length, message) in BAD_CLAUSES {
        let head = format!("{} ", select("SUM(x)"));
        let column = u32::try_from(head.len()).unwrap() + 1 + column;
        check(&format!("{head}{text}"), (1, column, *length), message);
    }
}

fn check(text: &str, (line, column, length): (u32, u32, u32), message: &str) {
    let error = parse(text).expect_err(text);
    assert_eq!(error.at, Location { line, column, length }, "{text}\n{error}");
    assert!(error.to_string().contains(message), "{text}\n{error}");
}

/// The statements of the page about the language.
fn statements() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/reference/query-language.md");
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|block| block.split("\n```").next().unwrap()).collect()
}

/// An example from a message, in a query if it is a part of one.
fn whole(example: &str) -> String {
    let (head, tail) = ("SELECT SUM(x)", "WINDOW TUMBLING (SIZE 1 HOUR)");
    match example.split(' ').next().unwrap() {
        "SELECT" if !example.contains("WINDOW") => format!("{example} {tail} FROM X"),
        "WINDOW" => format!("{head} {example} FROM X"),
        "FROM" => format!("{head} {tail} {example}"),
        "BETWEEN" | "WHERE" | "GROUP" | "WITH" | "WITHIN" | "RELEASE" => {
            format!("{head} {tail} FROM X {example}")
        }
        "region" | "ageGroup" => format!("{head} {tail} FROM X WHERE {example}"),
        word if word.starts_with("AVG(") => format!("SELECT {example} {tail} FROM X"),
        _ => example.to_owned(),
    }
}

/// Wherever a query breaks off, the message has an example that can be pasted, or says how the
/// function is written.
#[test]
fn a_query_that_breaks_off_is_answered_with_an_example() {
    let mut examples = 0;
    for text in statements() {
        let words = lexer::words(text).unwrap();
        for word in &words {
            let end = word.span.start;
            let lines: Vec<&str> = text.lines().take(usize::try_from(end.line).unwrap()).collect();
            let (last, before) = lines.split_last().unwrap();
            let last: String =
                last.chars().take(usize::try_from(end.column).unwrap() - 1).collect();
            let start = before.iter().chain([&last.as_str()]).copied().collect::<Vec<_>>();
            let start = start.join("\n");
            let Err(QueryError { problem, .. }) = parse(&start) else { continue };
            let said = problem.to_string();
            match problem {
                SyntaxError::Expected { expected, .. } => {
                    let form = said.split("found ").nth(1).unwrap();
                    let form = if form.contains("; ") { form } else { expected };
                    let pasted: Vec<&str> = form.split('`').skip(1).step_by(2).collect();
                    examples += pasted.len();
                    for example in &pasted {
                        let text = whole(example);
                        assert!(
                            parse(&text).is_ok(),
                            "{start}\n{said}\n{text}: {:?}",
                            parse(&text)
                        );
                    }
                    assert!(!pasted.is_empty() || form.contains(" is written "), "{start}\n{said}");
                }
                SyntaxError::Missing { .. } | SyntaxError::Arguments { .. } => {}
                SyntaxError::OutOfRange { what: "error", .. } => {
                    assert!(said.contains("such as 5 %"))
                }
                SyntaxError::Columns { .. } | SyntaxError::SameAlias { .. } => {}
                other => panic!("{start}\n{other:?}"),
            }
        }
    }
    assert!(examples > 100, "{examples}");
}

#[test]
fn what_is_meant_is_said() {
    let after = "SELECT SUM(x) WINDOW TUMBLING (SIZE 1 HOUR) FROM X";
    for (text, says) in [
        ("SELECT SUM(x) FORM X", "did you mean `FROM`?"),
        ("SELECT SUM(x) total WINDOW", "AS and a name for the column"),
        ("SELECT SUM(x) AVG(x)", "`,` and another function"),
        ("SELCT SUM(x)", "did you mean `SELECT`?"),
        ("SELECT AVG WINDOW", "AVG is written AVG(attribute)"),
        (&format!("{after} GRUOP BY region"), "did you mean `GROUP`?"),
        (
            &format!("{after} BETWEEN 3"),
            "the maximum number of owners in a window, found the end of the query; write `BETWEEN 3 AND 1000`",
        ),
        (&format!("{after} BETWEEN 3 WITH"), "found `WITH`; write `BETWEEN 3 AND 1000`"),
        (
            &format!("{after} BETWEEN few AND 9"),
            "the minimum number of owners in a window, found `few`; write `BETWEEN 10 AND 1000`",
        ),
        (&format!("{after} BETWEEN 9 AND 3"), "write `BETWEEN 10 AND 1000`"),
        (&format!("{after} WITHIN 7"), "write `WITHIN 7 OF 95 %`"),
        (&format!("{after} WITH (masks)"), "write `WITH (masks = 'epoch')`"),
        (&format!("{after} WITH (masks = 'none')"), "write `WITH (masks = 'epoch')`"),
        (
            "SELECT SUM(x) WINDOW TUMBLING (SIZE 10 MINUTES, GRACE",
            "write `WINDOW TUMBLING (SIZE 10 MINUTES, GRACE PERIOD 5 SECONDS)`",
        ),
        (
            "SELECT SUM(x) WINDOW CUMULATING (STEP 10 MINUTES",
            "write `WINDOW CUMULATING (STEP 10 MINUTES, SIZE 4 HOURS)`",
        ),
    ] {
        let said = parse(text).unwrap_err().to_string();
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn a_similar_word_is_found_or_the_only_one_with_this_beginning() {
    let known = ["co2_ppm", "co2_indoors", "temperature_c", "AirReadings"];
    for (word, meant) in [
        ("co2ppm", Some("co2_ppm")),
        ("temp", Some("temperature_c")),
        ("Air", Some("AirReadings")),
        ("co2", None),
        ("te", None),
        ("humidity", None),
    ] {
        assert_eq!(nearest(word, known), meant.map(str::to_owned), "{word}");
    }
}

#[test]
fn carets_are_under_the_wrong_word() {
    let text = "CREATE STREAM s AS\n  SELECT HISTOGRM(y)";
    let rendered = parse(text).unwrap_err().render(text);
    assert!(
        rendered.ends_with("  |\n2 |   SELECT HISTOGRM(y)\n  |          ^^^^^^^^"),
        "{rendered}"
    );
}

#[test]
fn long_and_deeply_nested_queries_are_refused() {
    let deep = format!("{} WHERE {}a = 1{}", select("SUM(x)"), "(".repeat(3000), ")".repeat(3000));
    assert_eq!(parse(&deep).unwrap_err().problem, SyntaxError::TooDeep);
    let long = format!("{} WHERE a = 1{}", select("SUM(x)"), " AND a = 1".repeat(3000));
    assert!(matches!(parse(&long).unwrap_err().problem, SyntaxError::TooLong { .. }));
    let most = format!("{} WHERE a = 1{}", select("SUM(x)"), " OR a = 1".repeat(2000));
    assert!(parse(&most).is_ok());
    let minus = format!("{} WHERE a = {}1", select("SUM(x)"), "- ".repeat(4000));
    assert!(parse(&minus).is_err());
}

/// Words from which proptest builds almost valid queries.
fn word() -> impl Strategy<Value = String> {
    let known = "CREATE STREAM s ( ) , AS SELECT SUM(x) AVG(heart-rate) HISTOGRAM( EDGES( 1 0.5 -2 1e-9 'y' \"z\" \
        WINDOW TUMBLING (SIZE HOUR GRACE PERIOD 5 SECONDS FROM BETWEEN AND OR NOT IN WHERE = <> <= >= < > GROUP BY \
        WITH alpha = masks RELEASE TO EXPLAIN PRIVACY SHOW DROP DESCRIBE ; -- /* */ * + ' \" ` \\ CASE WHEN END \
        INTERVAL CAST EXISTS ARRAY [ ] { } : :: ? $1 @ # % ^ | & ~ !";
    let known: Vec<String> = known.split_whitespace().map(str::to_owned).collect();
    prop_oneof![4 => proptest::sample::select(known), 1 => "\\PC{0,6}"]
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "(?s).{0,200}") {
        let _ = parse(&text).map_err(|error| error.render(&text));
    }

    #[test]
    fn any_words_are_parsed_or_refused(words in proptest::collection::vec(word(), 0..40)) {
        let text = words.join(" ");
        let _ = parse(&text).map_err(|error| error.render(&text));
        let inside = format!("{} {text}", select("SUM(x)"));
        if let Ok(statement) = parse(&inside) {
            prop_assert_eq!(parse(&statement.to_string()).unwrap(), statement);
        }
    }
}

#[test]
fn cumulating_windows_need_step_and_size() {
    let text = "CREATE STREAM s AS SELECT SUM(x) WINDOW CUMULATING (STEP 1 HOUR, SIZE 7 DAYS, GRACE PERIOD 5 SECONDS) FROM X WITH (epsilon = 1)";
    let query = create(text);
    assert_eq!((query.window, query.cumulating), (HOUR, Some(Span::seconds(7 * 86_400))));
    assert_eq!(query.grace, Some(Span::seconds(5)));
    assert_eq!(create(&query.to_string()), query);
    assert!(query.to_string().contains("WINDOW CUMULATING (STEP 1 HOUR, SIZE 7 DAYS, GRACE"));
    for (window, says) in [
        ("CUMULATING (STEP 1 HOUR)", "`, SIZE 365 DAYS`"),
        ("CUMULATING (SIZE 1 DAY)", "STEP"),
        ("CUMULATING (STEP 1 HOUR, SIZE 90 MINUTES)", "a multiple of STEP"),
        ("CUMULATING (STEP 1 MILLISECOND, SIZE 1 DAY)", "131072 steps"),
        ("CUMULATE (STEP 1 HOUR, SIZE 1 DAY)", "CUMULATING for running totals"),
    ] {
        let text = format!("CREATE STREAM s AS SELECT SUM(x) WINDOW {window} FROM X");
        let refused = parse(&text).unwrap_err().to_string();
        assert!(refused.contains(says), "{window}: {refused}");
    }
}

#[test]
fn a_select_alone_is_a_query_whose_name_follows_from_it() {
    let text = "SELECT AVG(x) WINDOW TUMBLING (SIZE 1 HOUR) FROM S BETWEEN 10 AND 100";
    let Ok(Statement::Create(create)) = parse(text) else { panic!("{:?}", parse(text)) };
    assert!(create.name.text.starts_with("query_"), "{}", create.name);
    assert_eq!(create.population, Some((10, 100)));
    // However it is written, it is the same; another one is not.
    let again = "select AVG(x)\nwindow tumbling (size 1 hour)\nfrom S between 10 and 100;";
    assert_eq!(parse(again), Ok(Statement::Create(create.clone())));
    let Ok(Statement::Create(other)) = parse(&text.replace("10", "11")) else { panic!() };
    assert_ne!(other.name, create.name);
    // Shown with its name, it is read as itself.
    assert_eq!(parse(&create.to_string()), Ok(Statement::Create(create.clone())));
    let explained = Statement::Explain { privacy: true, create };
    assert_eq!(parse(&format!("EXPLAIN PRIVACY {text}")), Ok(explained));
    assert!(
        parse("EXPLAIN SHOW SCHEMAS").unwrap_err().to_string().contains("CREATE STREAM or SELECT")
    );
}
