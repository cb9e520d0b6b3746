// Under which subject a schema stands, as in the Confluent clients.
package alpheus.registry;

/** Under which subject a topic's schema stands, as in the Confluent clients. */
public enum SubjectNaming {
    /** One schema a topic: {@code events-value}. */
    TOPIC,
    /** One schema for each record's name, in whatever topic. */
    RECORD,
    /** One schema for each record's name in each topic. */
    TOPIC_RECORD;

    /**
     * The subject of a record's value.
     *
     * @param topic the topic
     * @param record the record's full name
     * @return the subject
     */
    public String subject(String topic, String record) {
        return switch (this) {
            case TOPIC -> topic + "-value";
            case RECORD -> record;
            case TOPIC_RECORD -> topic + "-" + record;
        };
    }

    /**
     * The naming that a Confluent client's setting means: a class's name, with or without its package.
     *
     * @param strategy such as {@code TopicNameStrategy}
     * @return the naming
     */
    public static SubjectNaming of(String strategy) {
        return switch (strategy.substring(strategy.lastIndexOf('.') + 1)) {
            case "TopicNameStrategy" -> TOPIC;
            case "RecordNameStrategy" -> RECORD;
            case "TopicRecordNameStrategy" -> TOPIC_RECORD;
            default -> throw new IllegalArgumentException(
                    "value.subject.name.strategy is TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy");
        };
    }
}
