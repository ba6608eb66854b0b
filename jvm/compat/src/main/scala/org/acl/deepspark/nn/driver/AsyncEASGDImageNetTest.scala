// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Elastic averaging on a SequenceFile of images as floats: `AsyncEASGDImageNetTest SOLVER NET PARAM [TRAIN]`. */
object AsyncEASGDImageNetTest {
  def main(args: Array[String]): Unit = Program.run("AsyncEASGDImageNetTest", args, "PARAM") { program =>
    val train = program.images("sequence", 0, "imagenet_sampled.hsf")
    program.easgd(train.drop("data").withColumnRenamed("float_data", "data"), adaptive = false)
    ()
  }
}
