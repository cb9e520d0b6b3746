// Problems of a document, each with how to fix it.
package alpheus.document;

/** What is wrong at one position of a document. The names are those of the Rust code and the vectors. */
public enum Problem {
    /** The text is not YAML or JSON; the message is the parsing library's. */
    SYNTAX("cannot be parsed: %s"),
    /** The document has no content. */
    EMPTY("the document is empty; start from one of the examples"),
    /** More than one YAML document. */
    SECOND_DOCUMENT("a second document starts here; use one file per document"),
    /** Anchors, aliases or tags: a short file must not expand into a long one. */
    ALIAS("anchors, aliases and tags are not supported; write the value out"),
    /** Nested too deeply. */
    TOO_DEEP("nested too deeply; flatten the document"),
    /** Longer than any real schema. */
    TOO_LONG("the document is longer than %s bytes, the limit"),
    /** A key that is not a plain word. */
    BAD_KEY("a key must be a plain word, not empty, a list or a map"),
    /** A repeated key. */
    DUPLICATE_KEY("the key `%s` appears twice; keep one of the two"),
    /** An unknown key. */
    UNKNOWN_KEY("unknown key `%s`; the keys allowed here are %s"),
    /** A missing required key. */
    MISSING_KEY("`%s` is missing; add `%1$s: …`"),
    /** A key that conflicts with another key or with the type. */
    CONFLICT("`%s` cannot be used with %s"),
    /** A value of another kind is expected. */
    EXPECTED("expected %s"),
    /** A word that is not in the list. */
    UNKNOWN_WORD("`%s` is not one of %s"),
    /** Not a number. */
    NUMBER("%s"),
    /** A number outside its range. */
    OUT_OF_RANGE("must be between %s and %s"),
    /** A JSON number with a fraction. */
    INEXACT_NUMBER("a number with a fraction or exponent must be quoted, as in \"0.5\", so that it is read exactly"),
    /** Not a duration. */
    BAD_DURATION("not a duration; write 10s, 5min, 1hr, 1d, 500ms or PT1H"),
    /** Not a fraction between 0 and 1. */
    BAD_FRACTION("not a fraction between 0 and 1; write 1/3 or 0.2"),
    /** Not the fingerprint of a controller. */
    BAD_FINGERPRINT("not a controller's fingerprint; write its 64 hexadecimal digits"),
    /** A name that queries could not use. */
    BAD_NAME("not a valid name; use 1 to 64 letters, digits, `_` or `-`, and start with a letter or `_`"),
    /** Two names that queries could not distinguish. */
    DUPLICATE_NAME("the name `%s` is used twice (case is ignored, and `-` equals `_`); rename one of the two"),
    /** An unknown attribute. */
    UNKNOWN_ATTRIBUTE("the schema has no stream attribute `%s`; check the name or declare it"),
    /** A list without items. */
    EMPTY_LIST("the list is empty; add at least one item"),
    /** Too many items. */
    TOO_MANY("too many items; at most %s are allowed"),
    /** Several populations for one window. */
    SPLIT_POPULATIONS("a window has one population, and only one set of it is ever opened, so it cannot be split; "
            + "remove `splitPopulations`"),
    /** Bounds in the wrong order. */
    MIN_ABOVE_MAX("`min` is greater than `max`; swap them"),
    /** Edges out of order. */
    EDGES_NOT_ASCENDING("edges must be in strictly ascending order"),
    /** An aggregation that the type of the attribute does not support. */
    WRONG_TYPE("an attribute of type %s does not support `%s`"),
    /** Values so large that a sum may not fit in two words. */
    SUM_TOO_LARGE("the sum of this attribute over a window may not fit in two 64-bit words; narrow `min` and `max`, "
            + "or lower `scale` or `capacity`"),
    /** A window that is not a multiple of the tick. */
    NOT_MULTIPLE_OF_TICK("not a multiple of the schema's tick"),
    /** Buckets that are not unions of the grid's. */
    OFF_GRID("these buckets do not lie on the grid of `%s`; use multiples of its width or a subset of its edges"),
    /** Generalising an attribute without buckets. */
    NOTHING_TO_GENERALISE("`%s` has no histogram and no statistics by its buckets, so that nothing of it could "
            + "be released"),
    /** More words than the key stream has blocks for. */
    TOO_MANY_WORDS("an event would take %s words, at most %s fit; use fewer bins");

    private final String words;

    Problem(String words) {
        this.words = words;
    }

    String say(Object... details) {
        return String.format(words, details);
    }
}
