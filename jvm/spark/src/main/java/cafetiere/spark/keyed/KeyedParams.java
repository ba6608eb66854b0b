// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.PreflightException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.Params;

/** Which params of an estimator for tables a net of a key has, as one of all rows has them. */
public final class KeyedParams {
  private static final Set<String> USED = Set.of("featuresCols", "featuresCol", "categoricalCols",
      "labelCol", "weightCol", "classWeights", "imageSize", "idCol", "layers", "activation",
      "dropout", "batchNorm", "members", "net", "baseLr", "momentum", "weightDecay", "optimizer",
      "lrSchedule", "batchSize", "maxEpochs", "maxIter", "seed", "groupCol", "minGroupRows", "events",
      "pricePerCoreHour",
      "predictionCol", "rawPredictionCol", "probabilityCol", "predictedLabelCol", "thresholds");
  /** A key's net has one thread and one shard, as a net of all rows has with these. */
  private static final Set<String> ONE = Set.of("numWorkers", "shards", "threadsPerWorker");

  private KeyedParams() {}

  /** Refuses by name those that would be passed over in silence. */
  public static void check(Params params) {
    List<String> findings = new ArrayList<>();
    for (Param<?> param : params.params()) {
      if (USED.contains(param.name()) || isAsBefore(params, param)) continue;
      findings.add(param.name() + " is set, which nets of groupCol do not have: "
          + (ONE.contains(param.name()) ? "set it to 1, as each is trained on one thread"
              : "leave it as it was, or groupCol empty"));
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  private static boolean isAsBefore(Params params, Param<?> param) {
    if (!params.isSet(param)) return true;
    Object value = params.getOrDefault(param);
    return value.equals(params.getDefault(param).get())
        || (ONE.contains(param.name()) && value.equals(1));
  }
}
