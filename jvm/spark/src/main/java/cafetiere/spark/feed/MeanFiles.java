// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.spark.util.HadoopFiles;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * The mean images that nets name with transform_param { mean_file }. Who knows Hadoop reads them, and they
 * go with the net to where it runs.
 *
 * @param base64 their bytes, by the names that the nets have for them
 */
public record MeanFiles(Map<String, String> base64) implements Serializable {
  static final MeanFiles NONE = new MeanFiles(Map.of());
  /** The field, a comment or another string. */
  private static final Pattern FIELD = Pattern.compile("\\bmean_?file\\s*:\\s*"
      + "(\"[^\"\\n]*\"|'[^'\\n]*')|#[^\\n]*|\"[^\"\\n]*\"|'[^'\\n]*'");

  /** Reads those of solvers and nets, by Hadoop path or from this machine's disk. */
  public static MeanFiles of(Configuration conf, String... texts) {
    Map<String, String> files = new TreeMap<>();
    for (String text : texts) {
      for (Matcher field = FIELD.matcher(text); field.find(); ) {
        if (field.group(1) == null) continue;
        String name = field.group(1).substring(1, field.group(1).length() - 1);
        if (name.isEmpty() || files.containsKey(name)) continue;
        files.put(name, Base64.getEncoder().encodeToString(read(name, conf)));
      }
    }
    return files.isEmpty() ? NONE : new MeanFiles(files);
  }

  /** Their bytes, by name. */
  public Map<String, byte[]> bytes() {
    Map<String, byte[]> bytes = new HashMap<>();
    base64.forEach((name, text) -> bytes.put(name, Base64.getDecoder().decode(text)));
    return bytes;
  }

  /** As the engine's trainer and predictor want them. */
  void addTo(ObjectNode options) {
    if (base64.isEmpty()) return;
    ObjectNode files = options.putObject("mean_files");
    base64.forEach(files::put);
  }

  /** A file on this machine's disk goes first, as one that spark-submit put there. */
  private static byte[] read(String path, Configuration conf) {
    try {
      if (Files.isRegularFile(Path.of(path))) return Files.readAllBytes(Path.of(path));
    } catch (InvalidPathException e) {
      // Then it is a URI.
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the mean_file " + path + ": " + e, e);
    }
    return HadoopFiles.read(path, conf);
  }
}
