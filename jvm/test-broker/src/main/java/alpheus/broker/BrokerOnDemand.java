// A broker for tests in other languages, controlled by its standard input.
package alpheus.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * A broker for tests in other languages. It prints the addresses of both listeners in one line, then
 * answers each command with one line: {@code kill}, {@code start}, and {@code allow PREFIX}. The last
 * grants {@link Broker#USER} the permissions of a store for topics, groups and transactional ids with that
 * prefix. The process ends when its input ends.
 */
public final class BrokerOnDemand {
    private BrokerOnDemand() {}

    /**
     * Runs the broker.
     *
     * @param arguments none
     * @throws Exception if the broker cannot be started
     */
    public static void main(String[] arguments) throws Exception {
        try (Broker broker = Broker.start();
                var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            say(broker.bootstrap() + " " + broker.secured("").get("bootstrap.servers"));
            for (String order = orders.readLine(); order != null; order = orders.readLine()) {
                obey(broker, order.split(" ", 2));
            }
        }
    }

    private static void obey(Broker broker, String[] order) throws Exception {
        switch (order[0]) {
            case "kill" -> broker.kill();
            case "start" -> broker.startAgain();
            case "allow" -> allow(broker, order[1]);
            default -> throw new IOException("unknown command: " + order[0]);
        }
        say("done");
    }

    private static void allow(Broker broker, String prefix) throws Exception {
        for (AclOperation operation : new AclOperation[] {
            AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS,
            AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
        }) {
            allow(broker, ResourceType.TOPIC, prefix, operation);
        }
        allow(broker, ResourceType.TRANSACTIONAL_ID, prefix, AclOperation.DESCRIBE);
        allow(broker, ResourceType.TRANSACTIONAL_ID, prefix, AclOperation.WRITE);
        allow(broker, ResourceType.GROUP, prefix, AclOperation.READ);
    }

    private static void allow(Broker broker, ResourceType type, String prefix, AclOperation operation)
            throws Exception {
        broker.allow(new AclBinding(
                new ResourcePattern(type, prefix, PatternType.PREFIXED),
                new AccessControlEntry("User:" + Broker.USER, "*", operation, AclPermissionType.ALLOW)));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
