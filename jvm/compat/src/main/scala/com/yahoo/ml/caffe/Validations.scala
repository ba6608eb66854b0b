// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import cafetiere.spark.CaffeModel
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.types.{ArrayType, FloatType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Row, SparkSession}

/** The tests that a training made on its way. */
private[caffe] object Validations {
  private val json = new ObjectMapper()

  /** A row for each test between the first step and the last; a column for each output. */
  def table(model: CaffeModel, conf: Config, spark: SparkSession): DataFrame = {
    val last = conf.solverParameter.getMaxIter
    val tests = model.events.split("\n").toSeq.filterNot(_.isEmpty).map(json.readTree)
      .filter(event => event.path("event").asText == "test")
      .filter { event => val step = event.path("step").asInt; step > 0 && step < last }
      .map(_.path("outputs"))
    val names = tests.headOption.toSeq.flatMap { outputs =>
      val fields = outputs.fieldNames
      Iterator.continually(fields).takeWhile(_.hasNext).map(_.next()).toList
    }
    val rows = tests.map(outputs => Row.fromSeq(names.map(name => floats(outputs.path(name)))))
    val schema = StructType(names.map(StructField(_, ArrayType(FloatType), nullable = false)))
    spark.createDataFrame(java.util.Arrays.asList(rows: _*), schema)
  }

  private def floats(value: JsonNode): Array[Float] =
    if (value.isArray) Array.tabulate(value.size)(value.path(_).floatValue) else Array(value.floatValue)
}
