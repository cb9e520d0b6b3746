// A client for the Confluent API of schema registries.
package alpheus.registry;

import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.document.Value.Scalar;
import alpheus.registry.RegistryException.Fault;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;

/**
 * A client for the Confluent API of schema registries. The registry learns schemas and who requests them. A
 * schema contains nothing about events. The registry is not trusted: keys are bound to a schema's content,
 * not to its number. So a registry that lies breaks windows and opens none.
 */
public final class RegistryClient {
    private static final String CONTENT = "application/vnd.schemaregistry.v1+json";
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int OK = 200;
    private static final int UNAUTHORISED = 401;
    private static final int FORBIDDEN = 403;
    private static final int NOT_FOUND = 404;
    private static final int CONFLICT = 409;
    private static final int UNPROCESSABLE = 422;
    /** From this status on, the answer comes from a proxy or a failing registry. */
    private static final int SERVER_ERROR = 500;

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(PATIENCE).build();
    private final String url;
    private final String authorization;

    /**
     * A schema as a registry has it.
     *
     * @param id its number, which is in records
     * @param version its version in the subject
     * @param schema its text
     */
    public record Registered(int id, int version, String schema) {}

    /**
     * A client.
     *
     * @param url the address of the registry, from {@code schema.registry.url}
     * @param user {@code name:password}, or null
     */
    public RegistryClient(String url, String user) {
        this.url = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
        this.authorization = user == null
                ? null : "Basic " + Base64.getEncoder().encodeToString(user.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Registers a schema, or finds it if it is registered already.
     *
     * @param subject the subject
     * @param avsc the schema
     * @return its number
     * @throws RegistryException if the registry rejects it
     */
    public int register(String subject, String avsc) throws RegistryException {
        return number(ask("POST", "/subjects/" + path(subject) + "/versions", body(avsc), subject), "id");
    }

    /**
     * A subject's newest schema.
     *
     * @param subject the subject
     * @return the schema
     * @throws RegistryException if there is none
     */
    public Registered latest(String subject) throws RegistryException {
        return version(subject, "latest");
    }

    /**
     * A version of a subject.
     *
     * @param subject the subject
     * @param version its number, or {@code latest}
     * @return the schema
     * @throws RegistryException if there is none
     */
    public Registered version(String subject, String version) throws RegistryException {
        Node answer = ask("GET", "/subjects/" + path(subject) + "/versions/" + path(version), null,
                subject + ", version " + version);
        return new Registered(number(answer, "id"), number(answer, "version"), text(answer, "schema"));
    }

    /**
     * The schema of a number.
     *
     * @param id the number in a record
     * @return its text
     * @throws RegistryException if there is none
     */
    public String schema(int id) throws RegistryException {
        return text(ask("GET", "/schemas/ids/" + id, null, "number " + id), "schema");
    }

    /**
     * Whether the registry's compatibility rules allow a schema after a subject's newest.
     *
     * @param subject the subject
     * @param avsc the schema
     * @return whether they do
     * @throws RegistryException if the registry does not answer
     */
    public boolean isCompatible(String subject, String avsc) throws RegistryException {
        Node answer = ask(
                "POST", "/compatibility/subjects/" + path(subject) + "/versions/latest", body(avsc), subject);
        try {
            return field(answer, "is_compatible").bool();
        } catch (DocumentException other) {
            throw new RegistryException(Fault.MALFORMED, url);
        }
    }

    private static String body(String avsc) {
        return "{\"schema\": \"" + new String(JsonStringEncoder.getInstance().quoteAsString(avsc)) + "\"}";
    }

    /** A name as one part of a path. */
    private static String path(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private Node ask(String method, String path, String body, String about) throws RegistryException {
        HttpRequest.Builder request = HttpRequest.newBuilder(address(path)).timeout(PATIENCE).header("Accept", CONTENT)
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body));
        if (body != null) {
            request.header("Content-Type", CONTENT);
        }
        if (authorization != null) {
            request.header("Authorization", authorization);
        }
        try {
            HttpResponse<String> answer = http.send(request.build(), BodyHandlers.ofString());
            refuse(answer.statusCode(), about);
            return Node.fromJson(answer.body());
        } catch (IOException unreachable) {
            throw new RegistryException(Fault.UNREACHABLE, url);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RegistryException(Fault.UNREACHABLE, url);
        } catch (DocumentException other) {
            throw new RegistryException(Fault.MALFORMED, url);
        }
    }

    private URI address(String path) throws RegistryException {
        try {
            URI address = URI.create(url + path);
            // Without a host it is not an address, or it is several.
            if (!"http".equals(address.getScheme()) && !"https".equals(address.getScheme())
                    || address.getHost() == null) {
                throw new RegistryException(Fault.UNREACHABLE, url);
            }
            return address;
        } catch (IllegalArgumentException noAddress) {
            throw new RegistryException(Fault.UNREACHABLE, url);
        }
    }

    private void refuse(int status, String about) throws RegistryException {
        switch (status) {
            case OK -> { }
            case UNAUTHORISED, FORBIDDEN -> throw new RegistryException(Fault.UNAUTHORISED, about);
            case NOT_FOUND -> throw new RegistryException(Fault.NOT_FOUND, about);
            case CONFLICT -> throw new RegistryException(Fault.INCOMPATIBLE, about);
            case UNPROCESSABLE -> throw new RegistryException(Fault.INVALID, about);
            default -> throw new RegistryException(status >= SERVER_ERROR ? Fault.UNREACHABLE : Fault.MALFORMED, url);
        }
    }

    private Node field(Node answer, String name) throws RegistryException {
        try {
            Node field = answer.map().get(name);
            if (field != null) {
                return field;
            }
        } catch (DocumentException noObject) {
            // The same as a missing field.
        }
        throw new RegistryException(Fault.MALFORMED, url);
    }

    private int number(Node answer, String name) throws RegistryException {
        try {
            return (int) field(answer, name).integer(0, Integer.MAX_VALUE);
        } catch (DocumentException noNumber) {
            throw new RegistryException(Fault.MALFORMED, url);
        }
    }

    /** A text of any length: a schema may be longer than the limit of our own documents. */
    private String text(Node answer, String name) throws RegistryException {
        if (field(answer, name).value() instanceof Scalar scalar && !scalar.plain()) {
            return scalar.text();
        }
        throw new RegistryException(Fault.MALFORMED, url);
    }
}
