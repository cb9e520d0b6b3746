// What can be wrong at one place of a document, each with how to mend it.
package alpheus.document;

/** What is wrong at one place of a document. The names are those of the Rust code and the vectors. */
public enum Problem {
    /** The text is no YAML or JSON; the words are the parsing library's. */
    SYNTAX("cannot be read: %s"),
    /** Nothing stands in the document. */
    EMPTY("the document is empty; see the examples for one to start from"),
    /** More than one YAML document. */
    SECOND_DOCUMENT("a second document begins here; put each in a file of its own"),
    /** Anchors, aliases or tags: a short file must not unfold into a long one. */
    ALIAS("anchors, aliases and tags are not read; write the value out"),
    /** Nested too deeply. */
    TOO_DEEP("nested too deeply"),
    /** Longer than any real schema. */
    TOO_LONG("longer than %s bytes"),
    /** A key that is not a word. */
    BAD_KEY("a key must be a word"),
    /** A key twice. */
    DUPLICATE_KEY("`%s` stands here a second time; keep one of them"),
    /** A key that means nothing here. */
    UNKNOWN_KEY("`%s` means nothing here; known are %s"),
    /** A key that must stand. */
    MISSING_KEY("`%s` is missing; add it"),
    /** A key that makes no sense beside another, or with this type. */
    CONFLICT("`%s` does not go with %s; leave one of them out"),
    /** Another shape was expected. */
    EXPECTED("%s must stand here"),
    /** A word out of a fixed list was expected. */
    UNKNOWN_WORD("`%s` is none of %s"),
    /** No number. */
    NUMBER("%s"),
    /** A number beyond its range. */
    OUT_OF_RANGE("must lie between %s and %s"),
    /** A JSON number with a fraction. */
    INEXACT_NUMBER("a number with a fraction or exponent must stand in quotes, \"0.5\", to be read exactly"),
    /** No length of time. */
    BAD_DURATION("not a length of time; write 10s, 5min, 1hr, 1d, 500ms or PT1H"),
    /** No fraction between 0 and 1. */
    BAD_FRACTION("not a fraction between 0 and 1; write 1/3 or 0.2"),
    /** No fingerprint of a controller. */
    BAD_FINGERPRINT("not a controller's fingerprint: 64 hexadecimal digits"),
    /** A name that queries could not say. */
    BAD_NAME("a name has 1 to 64 letters, digits, `_` or `-` and starts with a letter or `_`"),
    /** Two names that queries could not tell apart. */
    DUPLICATE_NAME("`%s` is named twice (case and `-` or `_` make no difference); rename one"),
    /** No such attribute. */
    UNKNOWN_ATTRIBUTE("there is no stream attribute `%s` in this schema"),
    /** A list without items. */
    EMPTY_LIST("the list must not be empty"),
    /** Too many items. */
    TOO_MANY("at most %s of these"),
    /** Bounds the wrong way round. */
    MIN_ABOVE_MAX("`min` is greater than `max`; swap them"),
    /** Edges out of order. */
    EDGES_NOT_ASCENDING("edges must ascend strictly"),
    /** A statistic that the type of the attribute does not have. */
    WRONG_TYPE("an attribute of type %s has no `%s`"),
    /** Values so large that a sum has no bound in two words. */
    SUM_TOO_LARGE("a window's sum over this attribute may not fit two words; narrow `min` and `max`, "
            + "or lower `scale` or `capacity`"),
    /** A window that no tick divides. */
    NOT_MULTIPLE_OF_TICK("must be a multiple of the schema's tick"),
    /** Buckets that are no union of the grid's. */
    OFF_GRID("these buckets do not lie on the grid of `%s`; use multiples of its width or a subset of its edges"),
    /** Generalising what has no buckets. */
    NOTHING_TO_GENERALISE("`%s` has no histogram and no statistics by its buckets, so that nothing of it could "
            + "be released"),
    /** More words than a key stream has blocks. */
    TOO_MANY_WORDS("an event would take %s words, at most %s fit; use fewer bins");

    private final String words;

    Problem(String words) {
        this.words = words;
    }

    String say(Object... details) {
        return String.format(words, details);
    }
}
