// SPDX-License-Identifier: Apache-2.0
package apps

/** A program of SparkNet's that is not here: started, it says what does its work. */
abstract class Elsewhere private[apps] (what: String, instead: String) {
  def main(args: Array[String]): Unit =
    throw new UnsupportedOperationException(s"${getClass.getSimpleName.stripSuffix("$")} $what: $instead")
}

/** See ImageNetApp. */
object AlexNetMultiGPUApp extends Elsewhere(
  "trains on the GPUs of each node", "apps.ImageNetApp trains the same net on processors, all cores of each executor")

/** See CaffeEstimator. */
object GoogleNetMultiGPUApp extends Elsewhere(
  "trains on the GPUs of each node", "cafetiere.spark.Submit -sync average -syncPeriod 50 trains GoogLeNet's" +
    " prototxt on processors, all cores of each executor")

/** See ImageNetApp. */
object TFImageNetApp extends Elsewhere("runs TensorFlow", "apps.ImageNetApp trains Caffe's net on the same images")

/** See CifarApp. */
object CifarDBApp extends Elsewhere(
  "has each worker write a LevelDB first", "apps.CifarApp trains without, as rows stay in the executors")

/** See ImageNetApp. */
object ImageNetCreateDBApp extends Elsewhere(
  "writes a LevelDB on each worker", "preprocessing.CreateDB writes one, and apps.ImageNetApp trains without")

/** See ImageNetApp. */
object ImageNetRunDBApp extends Elsewhere(
  "trains on the LevelDB of each worker", "apps.ImageNetApp trains without, as rows stay in the executors")
