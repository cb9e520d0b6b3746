// Names of subjects, as in the Confluent clients.
package alpheus.registry;

/** How the subject of a topic's schema is named, as in the Confluent clients. */
public enum SubjectNaming {
    /** One schema for each topic: {@code events-value}. */
    TOPIC,
    /** One schema for each record name, in all topics. */
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
     * The naming of a Confluent client's setting: a class name, with or without its package.
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
                    "value.subject.name.strategy must be TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy");
        };
    }
}
