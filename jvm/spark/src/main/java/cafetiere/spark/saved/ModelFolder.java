// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.saved;

import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/**
 * The folder of a saved CaffeModel: its params as Spark ML saves them, and in data/ what Caffe's tools read.
 *
 * @param path a Hadoop path
 */
public record ModelFolder(String path) {
  private static final String HDF5 = ".h5";

  /** That of the CaffeModel inside a saved model of a table. */
  public static ModelFolder inTableModel(String path) {
    return new ModelFolder(path + "/net");
  }

  /** The folder of the nets of all keys, which a saved model of a table may have instead. */
  public static String netsOfKeys(String path) {
    return path + "/nets";
  }

  /** What is there in place of a model that predicts by itself, and where such a one may be; or nothing. */
  public static Optional<String> otherThanModel(String path, Configuration conf) {
    if (HadoopFiles.exists(netsOfKeys(path), conf)) {
      return Optional.of("the model at " + path + " has a net for each key: save the model of one, which"
          + " modelOf(key) gives, and give the path of that");
    }
    if (HadoopFiles.exists(path + "/stages", conf)) {
      return Optional.of(path + " is a saved pipeline: give the path of its model, which is a folder of "
          + path + "/stages, or save that stage by itself");
    }
    return Optional.empty();
  }

  /** A caffemodel, unless there is its {@link #hdf5} form. */
  public String weights() {
    return data("model.caffemodel");
  }

  /** A solverstate, likewise. */
  public String state() {
    return data("model.solverstate");
  }

  /** The file that is there instead of {@code file} where the binary form would be too large. */
  public static String hdf5(String file) {
    return file + HDF5;
  }

  /** The path of a file of that name. */
  public String data(String name) {
    return path + "/data/" + name;
  }

  /** The params that were set, by name. */
  public JsonNode params(Configuration conf) {
    return Json.parse(HadoopFiles.readFirst(path + "/metadata", "part-", conf)).path("paramMap");
  }
}
