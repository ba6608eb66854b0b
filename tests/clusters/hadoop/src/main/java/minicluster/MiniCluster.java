// SPDX-License-Identifier: Apache-2.0
package minicluster;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeys;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * HDFS with a DataNode and YARN with two NodeManagers, in this JVM. Its argument is the folder for what
 * clients need: core-site.xml, yarn-site.xml and resource-types.xml. Says "ready" on stdout, then does
 * what the lines of stdin say ({@link Commands}), and ends with it, so that it outlives no test. What is
 * left in containers then its caller ends.
 */
public final class MiniCluster {
  static final int NODES = 2;
  private static final int NODE_MB = 4096;
  private static final int NODE_CORES = 8;
  private static final String QUEUES = "yarn.scheduler.capacity.root.";

  private MiniCluster() {}

  /** Runs until stdin ends. */
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    PrintStream out = System.out;
    System.setOut(System.err); // where log lines go
    YarnConfiguration conf = settings();
    MiniDFSCluster hdfs = new MiniDFSCluster.Builder(conf, new File("hdfs")).numDataNodes(1).build();
    MiniYARNCluster yarn = new MiniYARNCluster("yarn", 1, NODES, 1, 1);
    conf.set(CommonConfigurationKeys.FS_DEFAULT_NAME_KEY, hdfs.getURI().toString());
    yarn.init(conf);
    yarn.start();
    if (!yarn.waitForNodeManagersToConnect(60_000)) throw new IOException("a NodeManager is missing");
    writeClientSettings(yarn.getConfig(), folder);
    out.println("ready");
    Commands commands = new Commands(hdfs.getFileSystem(), yarn.getResourceManager());
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(commands.answer(line));
    }
    Runtime.getRuntime().halt(0); // at once: nothing of it is kept, and its own end takes half a minute
  }

  private static YarnConfiguration settings() {
    YarnConfiguration conf = new YarnConfiguration();
    conf.setBoolean("dfs.permissions.enabled", false);
    conf.setInt("dfs.replication", 1);
    conf.setInt(YarnConfiguration.NM_PMEM_MB, NODE_MB);
    conf.setInt(YarnConfiguration.NM_VCORES, NODE_CORES);
    conf.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, false);
    conf.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    // A disk that is nearly full for others.
    conf.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 99.5f);
    conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 128);
    conf.setInt(YarnConfiguration.RM_NM_HEARTBEAT_INTERVAL_MS, 100);
    conf.setBoolean(YarnConfiguration.NODE_LABELS_ENABLED, true);
    conf.set(YarnConfiguration.FS_NODE_LABELS_STORE_ROOT_DIR,
        Path.of("labels").toAbsolutePath().toUri().toString());
    setQueues(conf);
    return conf;
  }

  /** Queue small has a quarter of the cluster and never more; nodes with label gpu are for default. */
  private static void setQueues(Configuration conf) {
    conf.set("yarn.scheduler.capacity.resource-calculator",
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator");
    conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "0.6");
    conf.set(QUEUES + "queues", "default,small");
    conf.set(QUEUES + "default.capacity", "75");
    conf.set(QUEUES + "default.maximum-capacity", "100");
    conf.set(QUEUES + "default.user-limit-factor", "10");
    conf.set(QUEUES + "small.capacity", "25");
    conf.set(QUEUES + "small.maximum-capacity", "25");
    conf.set(QUEUES + "accessible-node-labels." + Commands.LABEL + ".capacity", "100");
    conf.set(QUEUES + "default.accessible-node-labels", Commands.LABEL);
    conf.set(QUEUES + "default.accessible-node-labels." + Commands.LABEL + ".capacity", "100");
    conf.set(QUEUES + "small.accessible-node-labels", " ");
  }

  private static void writeClientSettings(Configuration conf, Path folder) throws IOException {
    Configuration core = new Configuration(false);
    core.set(CommonConfigurationKeys.FS_DEFAULT_NAME_KEY,
        conf.get(CommonConfigurationKeys.FS_DEFAULT_NAME_KEY));
    core.set("dfs.replication", "1");
    write(core, folder.resolve("core-site.xml"));
    Configuration yarn = new Configuration(false);
    for (String name : new String[] {YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS,
        YarnConfiguration.RM_HOSTNAME, YarnConfiguration.RM_WEBAPP_ADDRESS}) {
      if (conf.get(name) != null) yarn.set(name, conf.get(name));
    }
    write(yarn, folder.resolve("yarn-site.xml"));
    try (var types = MiniCluster.class.getResourceAsStream("/resource-types.xml")) {
      Files.copy(types, folder.resolve("resource-types.xml"));
    }
  }

  private static void write(Configuration conf, Path file) throws IOException {
    try (var out = Files.newOutputStream(file)) {
      conf.writeXml(out);
    }
  }
}
