// Makes topics, as deploy/conf/topics.sh does where Kafka's own tools are at hand.
package alpheus.demo;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Makes topics that are not there yet. */
public final class MakeTopics {
    private MakeTopics() {}

    /**
     * Makes topics.
     *
     * @param arguments the broker, then {@code NAME:PARTITIONS} or {@code NAME:PARTITIONS:SETTING=VALUE} each
     * @throws Exception if the broker refuses
     */
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Set<String> there = admin.listTopics().names().get();
            List<NewTopic> wanted = Stream.of(arguments).skip(1).map(MakeTopics::topic)
                    .filter(topic -> !there.contains(topic.name())).toList();
            admin.createTopics(wanted).all().get();
            System.out.println("made " + wanted.size());
        }
    }

    private static NewTopic topic(String words) {
        String[] parts = words.split(":");
        NewTopic topic = new NewTopic(parts[0], Integer.parseInt(parts[1]), (short) 1);
        Map<String, String> settings = new HashMap<>();
        for (int i = 2; i < parts.length; i++) {
            String[] setting = parts[i].split("=");
            settings.put(setting[0], setting[1]);
        }
        return topic.configs(settings);
    }
}
