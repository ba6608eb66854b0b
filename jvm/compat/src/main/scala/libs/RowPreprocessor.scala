// SPDX-License-Identifier: Apache-2.0
package libs

import cafetiere.spark.preprocess
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** Has a [[Preprocessor]] write the columns of the rows that a fit or a transform of Spark feeds to a net:
  * the base of a class without arguments, which the param `preprocessor` names. A column comes to hold
  * floats; one without a shape stays as it is. What is random is drawn once a row, and anew where a task
  * runs again.
  *
  * @param shapes of a row in the net, by column
  */
abstract class RowPreprocessor(shapes: Map[String, Array[Int]]) extends preprocess.Preprocessor {
  private type Writer = (Any, Array[Float]) => Unit

  /** What writes the values of rows of these columns. */
  protected def preprocessor(schema: StructType): Preprocessor

  private class Writers(forTest: Boolean) {
    private var known: StructType = _
    private var ofColumns: Array[Option[(Writer, Int)]] = _

    def row(from: Row): Row = {
      if (from.schema != known) prepare(from.schema)
      Row.fromSeq(from.toSeq.zip(ofColumns).map {
        case (value, Some((write, count))) =>
          val floats = new Array[Float](count)
          write(value, floats)
          floats
        case (value, None) => value
      })
    }

    private def prepare(schema: StructType): Unit = {
      val made = if (forTest) preprocessor(schema).forTest else preprocessor(schema)
      ofColumns = schema.fieldNames.map(name =>
        shapes.get(name).map(shape => (made.convert(name, shape), shape.product)))
      known = schema
    }
  }

  private val toTrain = new Writers(forTest = false)
  private val toTest = new Writers(forTest = true)

  override def schema(columns: StructType): StructType =
    StructType(columns.fields.map(field =>
      if (shapes.contains(field.name)) StructField(field.name, ArrayType(FloatType, containsNull = false))
      else field))

  override def apply(row: Row): Row = toTest.row(row)

  override def applyToTrain(row: Row): Row = toTrain.row(row)
}
