import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** java Client.java URL TOKEN CA: see h2clients_test.go. */
class Client {
    public static void main(String[] args) throws Exception {
        String path = args[0] + "/api/v1/namespaces/default/configmaps";
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (FileInputStream in = new FileInputStream(args[2])) {
            int n = 0;
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                trusted.setCertificateEntry("ca" + n++, certificate);
            }
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(context).build();
        HttpRequest.Builder request = HttpRequest.newBuilder().header("Authorization", "Bearer " + args[1]);

        String large = "x".repeat(1000000);
        var created = client.send(request.copy().uri(URI.create(path)).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"metadata\":{\"name\":\"large\"},\"data\":{\"a\":\"" + large + "\"}}")).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println("created " + created.statusCode());
        var listed = client.send(request.copy().uri(URI.create(path)).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println("listed " + listed.statusCode() + " " + (listed.body().contains(large) && listed.version() == HttpClient.Version.HTTP_2));
        var watch = client.send(request.copy().uri(URI.create(path + "?watch=true&fieldSelector=metadata.name%3Dsmall")).build(), HttpResponse.BodyHandlers.ofLines());
        Pattern event = Pattern.compile("\"type\":\"([A-Z]+)\".*\"data\":\\{\"a\":\"([^\"]*)\"");
        watch.body().forEach(line -> {
            var found = event.matcher(line);
            System.out.println(found.find() ? "event " + found.group(1) + " " + found.group(2) : "failed " + line);
        });
    }
}
