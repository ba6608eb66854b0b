// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.{ListBuffer, Map}

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.{DataTypes, StructField, StructType}

import cafetiere.core.net.{Net => EngineNet}
import caffe.Caffe.NetParameter

/** A net that reads rows of a DataFrame: each of its inputs takes the column of its name, and the batch
  * is the inputs' first size. `forward` runs the layers of phase TEST, `forwardBackward` those of
  * phase TRAIN, on the same weights. For one thread at a time.
  */
class CaffeNet private[libs] (
    netParam: NetParameter,
    schema: StructType,
    preprocessor: Preprocessor,
    training: EngineNet) {
  private val weights = new NetWeights(training)
  private lazy val trainingRows = new RowFeed(training, schema, preprocessor)
  private lazy val testing = {
    val net = EngineNet.of(netParam.toString, "TEST")
    net.shareWith(training)
    net
  }
  private lazy val testingRows = new RowFeed(testing, schema, preprocessor.forTest)

  /** Runs the net on the next rows, at most a batch of them.
    *
    * @param dataBlobNames further blobs to give
    * @return the net's outputs and these blobs, whose first size is the number of rows, by name
    * @throws NoSuchElementException if there is no row
    */
  def forward(rowIt: Iterator[Row], dataBlobNames: List[String] = Nil): Map[String, NDArray] = {
    testingRows.fill(rowIt)
    testing.forward()
    Map((outputNames ++ dataBlobNames).map(name => name -> BlobArrays.copy(testing.blob(name))): _*)
  }

  /** Computes the gradients of the next rows, at most a batch of them, for `getGradients`. */
  def forwardBackward(rowIt: Iterator[Row]): Unit = {
    fill(rowIt)
    training.clearParamDiffs()
    training.forward()
    training.backward()
  }

  /** Copies of the weights, by layer. */
  def getWeights(): Map[String, ListBuffer[NDArray]] = weights.get()

  /** Replaces all weights.
    *
    * @throws IllegalArgumentException if layers, arrays or shapes differ; nothing is replaced then
    */
  def setWeights(weights: Map[String, ListBuffer[NDArray]]): Unit = this.weights.set(weights)

  /** Copies of the gradients of the last pass backward, by layer. */
  def getGradients(): Map[String, ListBuffer[NDArray]] = weights.gradients()

  /** Takes the weights of the layers of the same names from a .caffemodel, or its HDF5 form. */
  def copyTrainedLayersFrom(filename: String): Unit = training.copyFrom(filename)

  /** Writes the weights as a .caffemodel; in its HDF5 form where the name ends with ".h5". */
  def saveWeightsToFile(filename: String): Unit = training.save(filename)

  /** The columns that the net's outputs make. */
  def outputSchema(): StructType = StructType(outputNames.map(name =>
    StructField(name, DataTypes.createArrayType(DataTypes.FloatType), nullable = false)))

  private[libs] def fill(rowIt: Iterator[Row]): Unit = trainingRows.fill(rowIt)

  private def outputNames: Seq[String] =
    Lists.of(testing.outputs).map(number => testing.blobNames.get(number))
}

object CaffeNet {

  /** A net of its own.
    *
    * @param schema the DataFrame's
    */
  def apply(netParam: NetParameter, schema: StructType, preprocessor: Preprocessor): CaffeNet =
    new CaffeNet(netParam, schema, preprocessor, EngineNet.of(netParam.toString, "TRAIN"))
}
