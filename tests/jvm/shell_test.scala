// SPDX-License-Identifier: Apache-2.0
// What a user types into spark-shell: train on a DataFrame, predict, look at an inner blob.
import cafetiere.spark.CaffeEstimator
import org.apache.spark.sql.functions._

val solver = """base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: 60 random_seed: 1"""
val net = """
name: "blobs"
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 3 height: 1 width: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
// Three classes that a plane tells apart: one feature is large.
val rows = spark.range(200).select(
  col("id"),
  (col("id") % 3).cast("int").as("label"),
  array((0 to 2).map(i => when(col("id") % 3 === i, 2.0f).otherwise(0.1f)): _*).as("features"))

val model = new CaffeEstimator().setSolver(solver).setNet(net).setNumWorkers(2).fit(rows)
val scored = model.setOutputCols("ip").transform(rows)
val hits = scored.where(col("prediction") === col("label")).count()
val sizes = scored.select(size(col("ip"))).distinct().collect().map(_.getInt(0)).toSeq
val verdict = if (hits == 200 && sizes == Seq(3)) "passed" else "failed"
println(s"\nshell_test: $verdict, $hits of 200 rows right, ip has ${sizes.mkString} values")
spark.stop()
System.exit(0)
