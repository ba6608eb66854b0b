package cafetiere.spark;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * The sync params as the engine takes them: prototxt text of a SyncParameter that holds the fields
 * that were given, so that the others stay as the solver has them. The engine checks it.
 */
final class SyncText {
  private SyncText() {}

  /** A field a line, "" if none is given; reads syncParamFile. */
  static String of(SyncParams params, Configuration conf) {
    List<String> lines = new ArrayList<>();
    String mode = params.getSyncMode();
    if (!params.getSyncParamFile().isEmpty()) {
      // DeepSpark's fields have the same names here.
      lines.add(HadoopFiles.readText(params.getSyncParamFile(), conf).strip());
      if (mode.isEmpty()) mode = "easgd";
    }
    if (!mode.isEmpty()) lines.add("mode: " + quoted(mode));
    if (params.getSyncPeriod() != 0) lines.add("period: " + params.getSyncPeriod());
    if (!params.getSyncHistory().isEmpty()) {
      lines.add("history: " + quoted(params.getSyncHistory()));
    }
    if (!params.getSyncOptions().isBlank()) lines.add(params.getSyncOptions().strip());
    return String.join("\n", lines);
  }

  /** JSON and prototxt escape the same characters in the same way. */
  private static String quoted(String word) {
    return new TextNode(word).toString();
  }
}
