#!/bin/sh
# libjackson2-dataformat-yaml 2.8.11 with databind 2.14 of Debian 12 (Jackson, by which Java programs and clients read manifests), beside
# SnakeYAML 1.33 on which it stands.
#
# Seen: into a tree, an alias (*common) is read as the text of its name, "common", and `<<` is a member of that name. A plain 0400 is 400, and empty texts of a
# manifest come back as null once they were written with MINIMIZE_QUOTES. None of it is an error. SnakeYAML by itself has the mapping, 256 and "".
# Expected: the node that the anchor names, or an error; YAML has no text without quotes that begins with "*".
# Who is hurt: programs on the JVM that read the manifests and values which kubectl and Helm read: shared labels and environments are a word, in a field
# without a schema nobody notices, and a mode of 0400 is 0620.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libjackson2-dataformat-yaml=2.8.11-4 libjackson2-core-java libjackson2-databind-java libjackson2-annotations-java libyaml-snake-java >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >Main.java <<'END'
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLGenerator;
import java.util.Map;
import org.yaml.snakeyaml.Yaml;

public class Main {
    public static void main(String[] args) throws Exception {
        ObjectMapper yaml = new ObjectMapper(new YAMLFactory()), json = new ObjectMapper();
        for (String text : new String[] {
            "common: &common {app: web}\nselector: *common\n",
            "common: &common {app: web}\nlabels: {<<: *common, tier: front}\n",
            "defaultMode: 0400\n",
        }) {
            System.out.println("Jackson:   " + json.writeValueAsString(yaml.readTree(text)));
            System.out.println("SnakeYAML: " + json.writeValueAsString(new Yaml().load(text)));
        }
        ObjectMapper short_ = new ObjectMapper(new YAMLFactory().enable(YAMLGenerator.Feature.MINIMIZE_QUOTES));
        for (String value : new String[] {"", "null", "1e3", "0400"}) {
            String written = short_.writeValueAsString(Map.of("value", value));
            System.out.println("\"" + value + "\" written and read: " + json.writeValueAsString(yaml.readTree(written)));
        }
    }
}
END
java -cp "$(echo usr/share/java/*.jar | tr ' ' :)" Main.java | tee out
cat >want <<'END'
Jackson:   {"common":{"app":"web"},"selector":"common"}
SnakeYAML: {"common":{"app":"web"},"selector":{"app":"web"}}
Jackson:   {"common":{"app":"web"},"labels":{"<<":"common","tier":"front"}}
SnakeYAML: {"common":{"app":"web"},"labels":{"app":"web","tier":"front"}}
Jackson:   {"defaultMode":400}
SnakeYAML: {"defaultMode":256}
"" written and read: {"value":null}
"null" written and read: {"value":null}
"1e3" written and read: {"value":1000.0}
"0400" written and read: {"value":"0400"}
END
diff want out
