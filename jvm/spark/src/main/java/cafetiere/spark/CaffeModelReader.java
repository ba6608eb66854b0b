// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLReader;

/** Loads what CaffeModelWriter saved. */
final class CaffeModelReader extends MLReader<CaffeModel> {
  @Override
  public CaffeModel load(String path) {
    Configuration conf = sc().hadoopConfiguration();
    String uid = SparkInternals.savedUid(path, sc(), CaffeModel.class);
    TrainingResult training = new TrainingResult(
        HadoopFiles.read(path + CaffeModelWriter.WEIGHTS, conf),
        HadoopFiles.read(path + CaffeModelWriter.STATE, conf),
        HadoopFiles.readText(path + CaffeModelWriter.RESULT, conf),
        HadoopFiles.readText(path + CaffeModelWriter.EVENTS, conf));
    CaffeModel model = new CaffeModel(uid, training);
    SparkInternals.loadParams(model, path, sc());
    return model;
  }
}
