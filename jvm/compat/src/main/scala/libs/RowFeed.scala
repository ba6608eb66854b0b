// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.StructType

import cafetiere.core.net.{Net => EngineNet}

/** Writes rows of a DataFrame into the inputs of a net, each from the column of its name. */
private[libs] class RowFeed(net: EngineNet, schema: StructType, preprocessor: Preprocessor) {
  private class Input(number: Int) {
    val name: String = net.blobNames.get(number)
    val shape: Array[Int] = BlobArrays.shape(net.blob(number))
    val column: Int = schema.fieldNames.indexOf(name)
    if (column < 0)
      throw new IllegalArgumentException(
        s"the net's input $name needs a column of that name, and there are " +
          schema.fieldNames.mkString(", "))
    val row = new Array[Float](shape.drop(1).product)
    val convert: (Any, Array[Float]) => Unit = preprocessor.convert(name, shape.drop(1))
  }

  private val inputs = Lists.of(net.inputs).map(number => new Input(number))
  private val batch = inputs.headOption.fold(0)(_.shape.headOption.getOrElse(1))
  for (input <- inputs if input.shape.headOption.getOrElse(1) != batch)
    throw new IllegalArgumentException(
      s"input ${input.name} has ${input.shape.headOption.getOrElse(1)} rows, and " +
        s"${inputs.head.name} has $batch: they must be as many")
  private var rows = batch // of the net as it is now

  /** Fills a batch. Where fewer rows are left the net is made as small as they are.
    *
    * @throws NoSuchElementException if none is left
    */
  def fill(from: Iterator[Row]): Unit = {
    // Not by take: what it leaves of an iterator of Scala's is not said.
    val taken = new ArrayBuffer[Row](batch)
    while (taken.length < batch && from.hasNext) taken += from.next()
    if (taken.isEmpty && batch > 0)
      throw new NoSuchElementException("no row is left to fill the net's inputs with")
    resize(taken.length)
    for (input <- inputs) {
      val values = net.blob(input.name).data.asFloatBuffer
      for (row <- taken) {
        input.convert(row.get(input.column), input.row)
        values.put(input.row)
      }
    }
  }

  private def resize(count: Int): Unit = if (count != rows) {
    for (input <- inputs)
      net.reshape(input.name, (count +: input.shape.drop(1)).map(_.toLong).toArray: _*)
    net.reshape()
    rows = count
  }
}
