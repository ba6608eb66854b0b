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
 * The params that replace fields of the solver, as the engine takes them: only what was given, so that the
 * rest stays as the solver has it. The engine checks them.
 *
 * @param fields prototxt text of solver fields, "" for none
 * @param sync prototxt text of a SyncParameter, "" for none
 * @param deepSpark text of DeepSpark's parameter file, which is read before; "" for none
 */
public record SolverSettings(String fields, String sync, String deepSpark) implements Serializable {
  /** Nothing is given. */
  public static final SolverSettings NONE = new SolverSettings("", "", "");

  /** Those of an estimator; reads syncParamFile. */
  public static SolverSettings of(CaffeParams params, Configuration conf) {
    List<String> fields = new ArrayList<>();
    if (!params.getSyncMode().isEmpty()) fields.add("mode: " + quoted(params.getSyncMode()));
    if (params.getSyncPeriod() != 0) fields.add("period: " + params.getSyncPeriod());
    if (!params.getSyncHistory().isEmpty()) {
      fields.add("history: " + quoted(params.getSyncHistory()));
    }
    if (!params.getSyncOptions().isBlank()) fields.add(params.getSyncOptions().strip());
    String file = params.getSyncParamFile();
    String deepSpark = file.isEmpty() ? "" : HadoopFiles.readText(file, conf);
    return new SolverSettings(ownFields(params), String.join("\n", fields), deepSpark);
  }

  private static String ownFields(CaffeParams params) {
    List<String> fields = new ArrayList<>();
    if (!params.getOptimizer().isEmpty()) fields.add("type: " + quoted(params.getOptimizer()));
    if (params.getBaseLr() > 0) fields.add("base_lr: " + (float) params.getBaseLr());
    if (params.getMomentum() >= 0) fields.add("momentum: " + (float) params.getMomentum());
    if (params.getWeightDecay() >= 0) fields.add("weight_decay: " + (float) params.getWeightDecay());
    if (!params.getLrSchedule().isEmpty()) fields.add(policy(params.getLrSchedule()));
    if (params.getBatchSize() > 0) fields.add("batch_size: " + params.getBatchSize());
    return String.join("\n", fields);
  }

  /** The fields of a solver for a word of the param lrSchedule. */
  public static String policy(String schedule) {
    return schedule.equals("linear") ? "lr_policy: \"poly\" power: 1"
        : "lr_policy: " + quoted(schedule);
  }

  /** Adds what is given to options of the engine. */
  public void addTo(ObjectNode options) {
    if (!fields.isEmpty()) options.put("solver_fields", fields);
    if (!sync.isEmpty()) options.put("sync", sync);
    if (!deepSpark.isEmpty()) options.put("deepspark", deepSpark);
  }

  /** JSON and prototxt escape the same characters in the same way. */
  private static String quoted(String word) {
    return new TextNode(word).toString();
  }
}
