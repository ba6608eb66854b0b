// SPDX-License-Identifier: Apache-2.0
package cafetiere.tools

import java.nio.file.Path

import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Data sets that are cut down and shuffled. */
class SamplerTest {
  @Test def theFirstClassesInAnOrderOfTheirOwn(@TempDir folder: Path): Unit = {
    val spark = SparkSession.builder().master("local[2]").getOrCreate()
    try {
      val rows = spark.range(0, 400, 1, 3).selectExpr("concat('row ', id) id", "cast(id % 10 as int) label")
      def order(parts: Int, seed: Long, from: Int) =
        Sampler.sample(rows.repartition(from), "label", 4, parts, seed).collect().toSeq
      val once = order(4, 1, 3)
      assertEquals(160, once.distinct.size)
      assertTrue(once.forall(_.getInt(1) < 4))
      assertEquals(once, order(1, 1, 7), "neither the partitions before nor those behind matter")
      assertNotEquals(once, order(4, 2, 3))
      assertNotEquals(once.sortBy(_.getString(0)), once)
      val sizes = Sampler.sample(rows, "label", 0, 4, 1).rdd.mapPartitions(part => Iterator(part.size)).collect()
      assertEquals(400, sizes.sum)
      assertTrue(sizes.length == 4 && sizes.forall(size => size > 50 && size < 150), sizes.toSeq.toString)

      def uri(name: String) = folder.resolve(name).toUri.toString
      rows.withColumnRenamed("label", "digit").write.option("header", true).csv(uri("in"))
      Sampler.main(Array("-input", uri("in"), "-inputFormat", "csv", "-header", "true", "-label", "digit",
        "-classes", "1", "-parts", "2", "-output", uri("out"), "-outputFormat", "json"))
      assertEquals(40L, spark.read.json(uri("out")).filter("digit = '0'").count())
      val said = assertThrows(classOf[IllegalArgumentException], () => Sampler.main(Array("-output", "x")))
      assertEquals("-input is missing", said.getMessage)
    } finally spark.stop()
  }
}
