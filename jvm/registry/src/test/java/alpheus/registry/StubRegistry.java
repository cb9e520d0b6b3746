// An HTTP server on loopback with the part of the Confluent API that clients here use.
package alpheus.registry;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Keeps schemas as texts. The test decides which are compatible. */
final class StubRegistry implements AutoCloseable {
    private static final Pattern VERSIONS = Pattern.compile("/subjects/([^/]+)/versions(?:/([^/]+))?");
    private static final Pattern COMPATIBILITY = Pattern.compile("/compatibility/subjects/([^/]+)/versions/latest");
    private static final Pattern ID = Pattern.compile("/schemas/ids/(\\d+)");
    private static final Pattern BODY = Pattern.compile("\\{\"schema\": \"(.*)\"\\}");

    private final HttpServer http;
    private final List<String> schemas = new ArrayList<>();
    private final Map<String, List<Integer>> subjects = new HashMap<>();
    /** Required of every caller, if set. */
    String authorization;
    /** Whether schemas are compatible. */
    boolean compatible = true;
    /** Sent instead of any answer. */
    String nonsense;
    /** The status with which it fails, if set, like a proxy without a server. */
    int failure;

    StubRegistry() throws IOException {
        http = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        http.createContext("/", this::answer);
        http.start();
    }

    String url() {
        return "http://127.0.0.1:" + http.getAddress().getPort();
    }

    private synchronized void answer(HttpExchange exchange) throws IOException {
        String given = exchange.getRequestHeaders().getFirst("Authorization");
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        if (failure != 0) {
            error(exchange, failure);
        } else if (nonsense != null) {
            send(exchange, 200, nonsense);
        } else if (authorization != null && !authorization.equals(given)) {
            error(exchange, 401);
        } else {
            route(exchange, exchange.getRequestURI().getRawPath(), body);
        }
    }

    private void route(HttpExchange exchange, String path, String body) throws IOException {
        Matcher versions = VERSIONS.matcher(path);
        Matcher compatibility = COMPATIBILITY.matcher(path);
        Matcher id = ID.matcher(path);
        if (versions.matches() && exchange.getRequestMethod().equals("POST")) {
            register(exchange, decoded(versions.group(1)), schema(body));
        } else if (versions.matches()) {
            version(exchange, decoded(versions.group(1)), versions.group(2));
        } else if (compatibility.matches()) {
            send(exchange, 200, "{\"is_compatible\":" + compatible + "}");
        } else if (id.matches() && Integer.parseInt(id.group(1)) <= schemas.size()) {
            send(exchange, 200, "{\"schema\":\"" + schemas.get(Integer.parseInt(id.group(1)) - 1) + "\"}");
        } else {
            error(exchange, 404);
        }
    }

    private void register(HttpExchange exchange, String subject, String schema) throws IOException {
        if (schema == null || !schema.startsWith("{\\\"type")) {
            error(exchange, 422);
            return;
        }
        if (!schemas.contains(schema)) {
            schemas.add(schema);
        }
        int id = schemas.indexOf(schema) + 1;
        List<Integer> own = subjects.computeIfAbsent(subject, made -> new ArrayList<>());
        if (!own.contains(id)) {
            if (!compatible && !own.isEmpty()) {
                error(exchange, 409);
                return;
            }
            own.add(id);
        }
        send(exchange, 200, "{\"id\":" + id + "}");
    }

    private void version(HttpExchange exchange, String subject, String wanted) throws IOException {
        List<Integer> own = subjects.getOrDefault(subject, List.of());
        int version = wanted.equals("latest") ? own.size() : Integer.parseInt(wanted);
        if (version < 1 || version > own.size()) {
            error(exchange, 404);
            return;
        }
        int id = own.get(version - 1);
        send(exchange, 200, "{\"subject\":\"" + subject + "\",\"version\":" + version + ",\"id\":" + id
                + ",\"schema\":\"" + schemas.get(id - 1) + "\"}");
    }

    /** The escaped schema, as it is returned. */
    private static String schema(String body) {
        Matcher matcher = BODY.matcher(body);
        return matcher.matches() ? matcher.group(1) : null;
    }

    private static String decoded(String part) {
        return URLDecoder.decode(part, StandardCharsets.UTF_8);
    }

    private static void error(HttpExchange exchange, int status) throws IOException {
        send(exchange, status, "{\"error_code\":" + status + "01,\"message\":\"no\"}");
    }

    private static void send(HttpExchange exchange, int status, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/vnd.schemaregistry.v1+json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    @Override
    public void close() {
        http.stop(0);
    }
}
