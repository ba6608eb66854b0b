// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.spark.CaffeParams;
import cafetiere.spark.util.HadoopFiles;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * The sync params as the engine takes them: only what was given, so that the rest stays as the
 * solver has it. The engine checks them.
 *
 * @param sync prototxt text of a SyncParameter, "" for none
 * @param deepSpark text of DeepSpark's parameter file, which is read before; "" for none
 */
public record SyncSettings(String sync, String deepSpark) implements Serializable {
  /** Nothing is given. */
  public static final SyncSettings NONE = new SyncSettings("", "");

  /** Those of an estimator; reads syncParamFile. */
  public static SyncSettings of(CaffeParams params, Configuration conf) {
    List<String> fields = new ArrayList<>();
    if (!params.getSyncMode().isEmpty()) fields.add("mode: " + quoted(params.getSyncMode()));
    if (params.getSyncPeriod() != 0) fields.add("period: " + params.getSyncPeriod());
    if (!params.getSyncHistory().isEmpty()) {
      fields.add("history: " + quoted(params.getSyncHistory()));
    }
    if (!params.getSyncOptions().isBlank()) fields.add(params.getSyncOptions().strip());
    String file = params.getSyncParamFile();
    String deepSpark = file.isEmpty() ? "" : HadoopFiles.readText(file, conf);
    return new SyncSettings(String.join("\n", fields), deepSpark);
  }

  /** Adds what is given to options of the engine. */
  public void addTo(ObjectNode options) {
    if (!sync.isEmpty()) options.put("sync", sync);
    if (!deepSpark.isEmpty()) options.put("deepspark", deepSpark);
  }

  /** JSON and prototxt escape the same characters in the same way. */
  private static String quoted(String word) {
    return new TextNode(word).toString();
  }
}
